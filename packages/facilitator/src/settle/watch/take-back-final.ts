import type { KnownBlock, UndonePayment } from "../../ledger/transactions/undo-blocks.ts";
import {
  findInFinalBlocks,
  undoFinalPayments,
  undoFinalRefunds,
  undoFinalTransactions,
} from "../../ledger/transactions/undo-final-blocks.ts";
import type { WatchContext } from "./watch-context.ts";

/** Rows of a step: a millisecond or two on the event loop. */
const rowsAtOnce = 1_000;

/**
 * Takes back everything final in blocks that have left the chain: payments with their transactions,
 * refunds, and the gas of other transactions. Each step is a database transaction. A process that
 * dies between two leaves the blocks marked, and the next one begins again.
 *
 * @param unusedAtBlock a block of the chain below all of these
 */
export async function takeBackFinal(
  watch: WatchContext,
  blocks: readonly KnownBlock[],
  unusedAtBlock: number,
): Promise<void> {
  if (blocks.length === 0) return;
  const { network } = watch.network;
  const { ledger, logger } = watch.context;
  let payments = 0;
  for await (const left of walk(watch, "payments", blocks)) {
    const undone = await undoFinalPayments(ledger, { network, ...left, unusedAtBlock });
    report(watch, undone);
    payments += undone.length;
  }
  for (let start = 0; start < blocks.length; start += rowsAtOnce) {
    const some = blocks.slice(start, start + rowsAtOnce);
    await undoFinalRefunds(ledger, { network, blocks: some });
  }
  for await (const left of walk(watch, "transactions", blocks)) {
    await undoFinalTransactions(ledger, { network, ...left });
  }
  logger.error(
    { network, payments, blocks: blocks.length },
    "a reorganisation deeper than final took payments back; those that cannot be executed again are lost",
  );
  watch.onReorg();
}

/** The final rows of these blocks, in steps. */
async function* walk(
  { context, network: { network } }: WatchContext,
  table: "payments" | "transactions",
  blocks: readonly KnownBlock[],
): AsyncGenerator<{ ids: string[]; blocks: KnownBlock[] }, void, void> {
  const wanted = new Map(blocks.map((block) => [block.hash, block]));
  for (let after: string | undefined = ""; after !== undefined; ) {
    const wish = { table, network, after, limit: rowsAtOnce };
    const page: Awaited<ReturnType<typeof findInFinalBlocks>> = await findInFinalBlocks(
      context.ledger,
      wish,
    );
    const rows = page.rows.filter(({ block }) => wanted.get(block.hash)?.number === block.number);
    const found = new Map(rows.map(({ block }) => [block.hash, block]));
    if (rows.length > 0) yield { ids: rows.map(({ id }) => id), blocks: [...found.values()] };
    after = page.next;
  }
}

function report({ context, network }: WatchContext, undone: readonly UndonePayment[]): void {
  const { metrics, emit } = context;
  for (const { authorization, wasDelivered } of undone) {
    const labels = { network: network.network, delivered: String(wasDelivered) };
    metrics.reorganised.inc(labels);
    metrics.deepReorganised.inc(labels);
    emit({ type: "settle_reorganised", authorization, wasDelivered });
  }
}
