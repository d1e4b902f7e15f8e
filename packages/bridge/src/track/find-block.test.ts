import { type Devnet, startDevnet } from "@coinslot/devnet";
import { createPublicClient, http } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findBlockBefore } from "./find-block.ts";

let devnet: Devnet;

beforeAll(async () => {
  devnet = await startDevnet();
  // One block a minute, for distinct times.
  await devnet.client.mine({ blocks: 150, interval: 60 });
});
afterAll(() => devnet.stop());

describe("the first block of a search", () => {
  it.each([0n, 1n, 30n, 100n, 149n])(
    "is the last one that is older than %s minutes",
    async (ago) => {
      const client = createPublicClient({ transport: http(devnet.rpcUrl) });
      const newest = await client.getBlock();
      const timestamp = newest.timestamp - ago * 60n;

      const found = await findBlockBefore(client, timestamp);

      const [block, next] = await Promise.all([
        client.getBlock({ blockNumber: found }),
        client.getBlock({ blockNumber: found + 1n }),
      ]);
      expect(block.timestamp).toBeLessThan(timestamp);
      expect(next.timestamp).toBeGreaterThanOrEqual(timestamp);
    },
  );

  it("is the chain's first if all are younger", async () => {
    const client = createPublicClient({ transport: http(devnet.rpcUrl) });
    expect(await findBlockBefore(client, 1n)).toBe(0n);
  });

  it("is the newest if all are older", async () => {
    const client = createPublicClient({ transport: http(devnet.rpcUrl) });
    const { number, timestamp } = await client.getBlock();
    expect(await findBlockBefore(client, timestamp + 1n)).toBe(number);
  });
});
