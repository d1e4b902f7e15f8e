import { expect, it } from "vitest";
import { useTemporaryFolder } from "../testing/temporary-folder.ts";
import { createLanes } from "./lanes.ts";

const inFolder = useTemporaryFolder();

it("a look at a channel that another process uses keeps no call of this one waiting", async () => {
  const [other, own] = [createLanes(inFolder("locks")), createLanes(inFolder("locks"))];
  const held = await other.acquire(["0x1"], undefined);
  const look = own.tryAcquire("0x1");
  const call = own.acquire(["0x1"], undefined);
  expect(await look).toBeUndefined();
  held.release();
  const lane = await call;
  expect(await own.tryAcquire("0x1")).toBeUndefined();
  lane.release();
  const last = await own.tryAcquire("0x1");
  expect(last).toMatchObject({ index: 0 });
  last?.release();
});
