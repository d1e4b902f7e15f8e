import { createWriter } from "@coinslot/storage";
import { onTestFinished } from "vitest";
import { openLedger } from "../../ledger/open-ledger.ts";
import type { OperatorLedger } from "../operation.ts";

/** Opens a ledger as a seller does, until the test ends. */
export async function openTestLedger(url: string): Promise<OperatorLedger> {
  const { database, close } = await openLedger({ url, processId: "seller" });
  onTestFinished(close);
  const { kysely: db, dialect, notify } = database;
  return { db, dialect, notify, write: createWriter(database).write };
}
