import type { Address } from "@coinslot/protocol";
import { expect, it } from "vitest";
import { halveRows } from "./claim-memory.ts";

const authorizer: Address = `0x${"1".repeat(40)}`;
const other: Address = `0x${"2".repeat(40)}`;

it("claims have one row at least, however many small ones are reverted one after another", () => {
  const maxRows = new Map([
    [authorizer, 100],
    [other, 1],
  ]);
  const seen = [5, 3, 2, 2, 1].map((largest) => {
    halveRows({ maxRows }, largest);
    return [...maxRows.values()];
  });
  expect(seen).toEqual([
    [2, 1],
    [1, 1],
    [1, 1],
    [1, 1],
    [1, 1],
  ]);
});
