import { expect, it } from "vitest";
import { settleDeadlineMs } from "./settle-deadline.ts";

it("a settlement elsewhere is waited for as long as that facilitator waits for its blocks", () => {
  expect(settleDeadlineMs("eip155:9745")).toBe(35_000);
  expect(settleDeadlineMs("eip155:1")).toBe(53_000);
  expect(settleDeadlineMs("eip155:31337")).toBe(35_000);
});
