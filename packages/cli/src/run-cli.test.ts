import { expect, it } from "vitest";
import { movesTokens } from "./run-cli.ts";

it.each([
  ["pay https://shop.example", true],
  ["channels withdraw 0x1", true],
  ["channels refund 0x1", true],
  ["channels claim", true],
  ["channels list", false],
  ["refunds approve 1", true],
  ["payments list", false],
])("a signal does not end `coinslot %s` without its outcome: %s", (line, expected) => {
  expect(movesTokens(line.split(" "))).toBe(expected);
});
