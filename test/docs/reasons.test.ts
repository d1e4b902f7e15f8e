import { invalidReasons, settleErrorReasons } from "@coinslot/protocol";
import { expect, it } from "vitest";
import { readDocument } from "./code-block.ts";
import { readTables } from "./tables.ts";

it("the documents explain exactly the existing reasons for refusing a payment, in the order of the checks", () => {
  const tables = readTables(readDocument("docs/protocol.md"));
  const [invalid, settle] = tables.filter(({ heading }) => heading === "Reason");
  expect(invalid?.names).toEqual([...invalidReasons]);
  expect(settle?.names.toSorted()).toEqual([...settleErrorReasons].toSorted());
});
