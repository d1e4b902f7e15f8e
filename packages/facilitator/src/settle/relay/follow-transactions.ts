import type { TransactionReceipt } from "../../evm/transaction-receipt.ts";
import { readReceipts } from "./read-receipts.ts";
import { recordReceipt } from "./record-receipt.ts";
import type { Relayer } from "./relayer-context.ts";
import type { TrackedTransaction } from "./relayer-state.ts";
import { comeNear, resendStuck } from "./resend-stuck.ts";

/**
 * Reads receipts, records outcomes, and resends or replaces transactions that take too long. A
 * transaction whose receipt cannot be read waits for the next poll. It is resent like a missing one
 * after `replaceMs`, or `resendMs` where there are other endpoints: those behind its nonce wait for
 * it. The others go on. A relayer that loses its lease meanwhile, and regains it, follows other
 * objects: this poll ends there.
 *
 * @throws RpcUnavailableError when no node answers anything.
 */
export async function followTransactions(relayer: Relayer): Promise<void> {
  const { context, network, state } = relayer;
  const { clock } = context;
  const { lease } = state;
  if (lease === undefined) return;
  const open = [...state.open.values()].sort((a, b) => a.nonce - b.nonce);
  const needsDepth = open.some(({ payments }) =>
    payments.some(({ payment }) => network.serveAfter(payment) > 0),
  );
  // A payment is served by depth only from a head that this process has read itself.
  const head = needsDepth ? (await network.watcher.read(network.pollMs / 2)).number : 0n;
  const known = network.watcher.latest()?.number ?? 0n;
  const { receipts, faults } = await readReceipts(network.rpc, open, known);
  const missing: TrackedTransaction[] = [];
  const now = clock.now();
  const { rpc, times } = network;
  // Other endpoints may return what the first one does not.
  const patienceMs = rpc.endpoints.length > 1 ? times.resendMs() : times.replaceMs();
  for (const transaction of open) {
    if (state.lease !== lease) return;
    const receipt = receipts.get(transaction.id);
    const err = faults.get(transaction.id);
    if (err !== undefined && receipt === undefined) {
      logFault(relayer, transaction, err);
      transaction.unreadableSince ??= now;
      if (now - transaction.unreadableSince >= patienceMs) missing.push(transaction);
      continue;
    }
    transaction.unreadableSince = undefined;
    notice(relayer, transaction, receipt);
    if (receipt) await recordReceipt(relayer, { transaction, receipt, head });
    else missing.push(transaction);
  }
  if (receipts.size > 0) relayer.onCapacity();
  if (missing.length === 0) comeNear(relayer);
  await resendStuck(relayer, missing, { lease, head });
}

/** Logs the first fault of a transaction: each poll would repeat it. */
function logFault({ context, labels }: Relayer, transaction: TrackedTransaction, err: Error): void {
  if (transaction.isUnreadableLogged) return;
  transaction.isUnreadableLogged = true;
  context.logger.warn(
    { err, ...labels, nonce: transaction.nonce },
    "a node's answer about a transaction's receipt cannot be read; asking again",
  );
}

function notice(
  { context, network, pace }: Relayer,
  transaction: TrackedTransaction,
  receipt: TransactionReceipt | undefined,
): void {
  const isIncluded = receipt !== undefined;
  const head = network.watcher.latest();
  // A receipt found later than its block, such as after a restart, says nothing about the pace.
  if (head && receipt && receipt.blockNumber > head.number) network.pace.saw(receipt.blockNumber);
  if (isIncluded && !transaction.isIncluded && transaction.sentAt !== undefined) {
    pace.found(context.clock.now() - transaction.sentAt);
  }
  transaction.isIncluded = isIncluded;
}
