import { invalidReasons, settleErrorReasons } from "@coinslot/protocol";
import { expect, it } from "vitest";
import { readDocument } from "./code-block.ts";
import { readTables } from "./tables.ts";

it("every reason for refusing a payment is explained, in the order of the checks, and no other", () => {
  const tables = readTables(readDocument("docs/protocol.md"));
  const [invalid, settle] = tables.filter(({ heading }) => heading === "Reason");
  expect(invalid?.names).toEqual([...invalidReasons]);
  expect(settle?.names.toSorted()).toEqual([...settleErrorReasons].toSorted());
});
