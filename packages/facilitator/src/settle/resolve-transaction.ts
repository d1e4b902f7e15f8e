import type { OrderedPayment } from "../ledger/find-orders.ts";
import type { OpenTransaction } from "../ledger/find-transactions.ts";
import type { Inclusion } from "../ledger/ledger-payment.ts";
import type { PaymentOutcomes } from "../ledger/record-outcomes.ts";
import { expectedTransfer, findExecutions } from "./find-executions.ts";
import { readOutcomes } from "./read-outcomes.ts";
import type { SettlementNetwork } from "./settlement-context.ts";
import type { TransactionReceipt } from "./transaction-receipt.ts";

/** After so many transactions that tried it unfairly, a payment has failed. */
const mostCarried = 8;

/** What an included transaction means for the payments that it carries. */
export interface Resolution {
  outcomes: PaymentOutcomes[];
  /** Every payment of the transaction has its outcome. */
  isComplete: boolean;
}

/**
 * Reads from a receipt what became of a transaction's payments, of those that are deep enough.
 *
 * A transaction that reverted as a whole, or that only used its nonce up, tried nobody: its payments
 * are queued again, in smaller company. So are those that found no gas left. What was tried and is
 * not in the logs may have been executed by somebody else before; if not, it has failed.
 */
export async function resolveTransaction(options: {
  network: SettlementNetwork;
  transaction: OpenTransaction;
  receipt: TransactionReceipt;
  /** Blocks on top of the receipt's own. */
  depth: number;
}): Promise<Resolution> {
  const { network, transaction, receipt, depth } = options;
  const due = transaction.payments.filter(({ payment }) => network.serveAfter(payment) <= depth);
  const isComplete = due.length === transaction.payments.length;
  const sent = transaction.broadcasts.find(({ hash }) => hash === receipt.transactionHash);
  if (sent?.content === "filler") return { outcomes: [requeue(due)], isComplete };

  const isAlone = transaction.payments.length === 1;
  const inclusion: Inclusion = {
    transactionHash: receipt.transactionHash,
    blockNumber: receipt.blockNumber,
    blockHash: receipt.blockHash,
  };
  if (!receipt.isSuccess && !isAlone) {
    const [tryAgain, tooOften] = partition(due, ({ payment }) => payment.carried < mostCarried);
    const outcomes = [requeue(tryAgain), ...(await explainAbsent(network, tooOften, inclusion))];
    return { outcomes, isComplete };
  }
  const expected = due.map((each) => ({ ...expectedTransfer(each), each }));
  const executed: OrderedPayment[] = [];
  const mismatched: OrderedPayment[] = [];
  const absent: OrderedPayment[] = [];
  for (const [{ each }, outcome] of readOutcomes(receipt.logs, expected)) {
    if (outcome === "executed") executed.push(each);
    else if (outcome === "mismatch") mismatched.push(each);
    else absent.push(each);
  }
  const ranOut = !isAlone && isExhausted(transaction, receipt);
  const [unfair, tried] = partition(
    absent,
    ({ payment }) => ranOut && payment.carried < mostCarried,
  );
  return {
    isComplete,
    outcomes: [
      {
        confirmed: { ids: idsOf(executed), inclusion },
        failed: [
          {
            ids: idsOf(mismatched),
            reason: "invalid_exact_evm_transfer_event_mismatch",
            inclusion,
          },
        ],
      },
      requeue(unfair),
      ...(await explainAbsent(network, tried, inclusion)),
    ],
  };
}

async function explainAbsent(
  { rpc }: SettlementNetwork,
  absent: readonly OrderedPayment[],
  inclusion: Inclusion,
): Promise<PaymentOutcomes[]> {
  const searchable = absent.filter(({ payment }) => payment.unusedAtBlock !== undefined);
  const executions =
    searchable.length === 0
      ? new Map()
      : await findExecutions({
          rpc,
          payments: searchable,
          fromBlock:
            BigInt(Math.min(...searchable.map(({ payment }) => payment.unusedAtBlock ?? 0))) + 1n,
          toBlock: BigInt(inclusion.blockNumber),
        });
  return absent.map((each) => {
    const execution = executions.get(each);
    if (execution?.outcome === "executed") {
      return { confirmed: { ids: [each.payment.id], inclusion: execution.inclusion } };
    }
    const reason = "invalid_exact_evm_transaction_failed";
    return { failed: [{ ids: [each.payment.id], reason, inclusion }] };
  });
}

/** Calls that run out of gas take 63 of 64 parts of what there is, so next to nothing is left. */
function isExhausted({ gasLimit }: OpenTransaction, { gasUsed }: TransactionReceipt): boolean {
  return gasUsed * 32n >= gasLimit * 31n;
}

function requeue(payments: readonly OrderedPayment[]): PaymentOutcomes {
  return { requeued: { ids: idsOf(payments), isAlone: false } };
}

function idsOf(payments: readonly OrderedPayment[]): string[] {
  return payments.map(({ payment }) => payment.id);
}

function partition<Item>(
  items: readonly Item[],
  belongs: (item: Item) => boolean,
): [yes: Item[], no: Item[]] {
  return [items.filter(belongs), items.filter((item) => !belongs(item))];
}
