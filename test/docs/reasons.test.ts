import {
  channelCallReasons,
  channelReasons,
  channelRefusalReasons,
  gateReasons,
  invalidReasons,
  settleErrorReasons,
} from "@coinslot/protocol";
import { expect, it } from "vitest";
import { readDocument } from "./code-block.ts";
import { readTables } from "./tables.ts";

it("the documents explain exactly the existing reasons for refusing a payment, in the order of the checks", () => {
  const tables = readTables(readDocument("docs/protocol.md"));
  const [invalid, settle] = tables.filter(({ heading }) => heading === "Reason");
  expect(invalid?.names).toEqual([...invalidReasons]);
  const ofChannel = tables.find(({ heading }) => heading === "Reason of a channel");
  expect(ofChannel?.names).toEqual([...channelReasons, ...channelRefusalReasons]);
  const ofCall = tables.find(({ heading }) => heading === "Reason of a call");
  expect(ofCall?.names).toEqual([...channelCallReasons]);
  expect(settle?.names.toSorted()).toEqual([...settleErrorReasons].toSorted());
});

it("the documents explain exactly the reasons that are counted, besides those of a payment", () => {
  const tables = readTables(readDocument("docs/protocol.md"));
  const counted = tables.find(({ heading }) => heading === "Counted as");
  expect(counted?.names).toEqual(["offered", ...gateReasons, "other"]);
});
