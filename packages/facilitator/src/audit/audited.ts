import { randomUUID } from "node:crypto";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { OperationRefusedError } from "../operators/operation-refused-error.ts";
import { type Act, insertEntry } from "./audit-entry.ts";

/**
 * Runs an acting command, and writes it into the audit log.
 *
 * ```text
 *   writes with the ledger it is given   `begun` in the transaction of its first write
 *   acts by other parts                  `begun` before it acts
 *   either                               its outcome after it
 * ```
 *
 * So no act is without an entry, also where the process dies. A command that is refused before it
 * has written has one entry. Where the outcome cannot be written, the act stands as `begun`: it has
 * happened, so its caller gets its result.
 *
 * @param work gets the ledger to write with
 */
export async function audited<Result>(
  ledger: LedgerContext,
  act: Omit<Act, "id">,
  { isWithin, work }: { isWithin: boolean; work: (ledger: LedgerContext) => Promise<Result> },
): Promise<Result> {
  const named: Act = { ...act, id: randomUUID() };
  const { dialect } = ledger;
  if (!isWithin) {
    await ledger.write((db) => insertEntry({ db, dialect }, named, { outcome: "begun" }));
  }
  let result: Result;
  try {
    result = await work(isWithin ? writingEntry(ledger, named) : ledger);
  } catch (error) {
    await writeEnd(ledger, named, endOf(error));
    throw error;
  }
  await writeEnd(ledger, named, { outcome: "done", result });
  return result;
}

/** The ledger, whose writes have the entry in their transactions until one is committed. */
function writingEntry(ledger: LedgerContext, act: Act): LedgerContext {
  const { dialect } = ledger;
  let isWritten = false;
  return {
    ...ledger,
    async write(work, options) {
      if (isWritten) return ledger.write(work, options);
      const result = await ledger.write(async (transaction) => {
        const done = await work(transaction);
        await insertEntry({ db: transaction, dialect }, act, { outcome: "begun" });
        return done;
      }, options);
      isWritten = true;
      return result;
    },
  };
}

function endOf(error: unknown): Parameters<typeof insertEntry>[2] {
  if (!(error instanceof OperationRefusedError)) return { outcome: "failed" };
  return { outcome: "refused", code: error.code, message: error.message };
}

async function writeEnd(
  ledger: LedgerContext,
  act: Act,
  end: Parameters<typeof insertEntry>[2],
): Promise<void> {
  const { dialect } = ledger;
  await ledger.write((db) => insertEntry({ db, dialect }, act, end)).catch(() => undefined);
}
