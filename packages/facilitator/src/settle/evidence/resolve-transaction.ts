import type { RpcPool, RpcRequester } from "@coinslot/chain";
import { parseTransaction } from "viem";
import { callDataOf } from "../../evm/call-data.ts";
import type { TransactionReceipt } from "../../evm/transaction-receipt.ts";
import type { Inclusion } from "../../ledger/payments/ledger-payment.ts";
import type { PaymentOutcomes } from "../../ledger/payments/record-outcomes.ts";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import type { OpenTransaction } from "../../ledger/transactions/find-transactions.ts";
import type { Broadcast } from "../../ledger/transactions/store-transaction.ts";
import { schemeOf } from "../../schemes/registry.ts";
import type { Execution } from "../../schemes/scheme.ts";
import { countBatch } from "../batch-calldata.ts";
import type { SettlementNetwork } from "../context.ts";
import { excessGas } from "../relay/gas.ts";
import { claimsByScheme } from "./claims-by-scheme.ts";
import { findBurn } from "./find-burn.ts";
import { tryToFindExecutions } from "./find-executions.ts";
import type { LateLogs } from "./late-logs.ts";
import { type Failure, outcomeOf } from "./outcome-of.ts";

/** A payment fails after this many transactions that tried it unfairly. */
export const maxAttempts = 8;

type Nodes = RpcRequester & Partial<Pick<RpcPool, "endpoints">>;

/** Outcomes of the payments that an included transaction carries. */
export interface Resolution {
  outcomes: PaymentOutcomes[];
  /** Payments without an outcome: not deep enough yet, or the chain must be asked again. */
  left: OrderedPayment[];
  /**
   * True if the transaction's batch moved nothing as a whole, or a call found no gas left.
   */
  isSpoilt: boolean;
}

/**
 * Reads the outcomes of a transaction's payments from a receipt, as far as they are deep enough.
 *
 * A transaction that reverted as a whole, or that only used its nonce up, tried no payment. Its
 * payments are queued again, in smaller batches, up to a number of attempts. So are those that
 * found no gas left. A payment that was tried and is not in the logs may have been
 * executed by another sender before. If not, it has failed.
 */
export async function resolveTransaction(options: {
  network: { rpc: Nodes; lateLogs?: LateLogs } & Pick<
    SettlementNetwork,
    "serveAfter" | "finalAfter"
  >;
  transaction: OpenTransaction;
  receipt: TransactionReceipt;
  /** Blocks on top of the receipt's own. */
  depth: number;
}): Promise<Resolution> {
  const { network, transaction, receipt, depth } = options;
  const [due, young] = partition(
    transaction.payments,
    ({ payment }) => network.serveAfter(payment) <= depth,
  );
  const sent = transaction.broadcasts.find(({ hash }) => hash === receipt.transactionHash);
  const isSingle = transaction.payments.length === 1 && callsTarget(sent, transaction.payments);
  const inclusion: Inclusion = {
    transactionHash: receipt.transactionHash,
    blockNumber: receipt.blockNumber,
    blockHash: receipt.blockHash,
  };
  const gasShare = gasShareOf(transaction, receipt);
  const hasTried = sent?.content !== "filler" && (receipt.isSuccess || isSingle);
  if (!hasTried) {
    // A filler has no call of a payment: its gas is no payment's, and no payer's.
    const isFiller = sent?.content === "filler";
    const [tryAgain, tooOften] = partition(due, ({ payment }) => payment.attempts < maxAttempts);
    const { outcomes, unexplained } = await explainAbsent(network, tooOften, {
      transactionId: transaction.id,
      inclusion,
      ...(isFiller ? { billedGas: 0n } : { gasShare }),
    });
    return {
      outcomes: [requeue(transaction, tryAgain), ...outcomes],
      left: [...young, ...unexplained],
      isSpoilt: sent?.content === "payments",
    };
  }
  const executed: OrderedPayment[] = [];
  const mismatched: OrderedPayment[] = [];
  const absent: OrderedPayment[] = [];
  for (const [scheme, claims] of claimsByScheme(due)) {
    for (const [{ payment }, outcome] of scheme.readOutcomes(receipt.logs, claims)) {
      if (outcome === "executed") executed.push(payment);
      else if (outcome === "mismatch") mismatched.push(payment);
      else absent.push(payment);
    }
  }
  const ranOut = !isSingle && sent?.content !== "calls" && isExhausted(transaction, receipt);
  const [unfair, tried] = partition(
    absent,
    ({ payment }) => ranOut && payment.attempts < maxAttempts,
  );
  const { outcomes, unexplained, executions } = await explainAbsent(network, tried, {
    transactionId: transaction.id,
    inclusion,
    gasShare,
  });
  const [only] = transaction.payments;
  const runsCode = isSingle && only?.payment.settlesAlone === true;
  if (runsCode && sent) {
    const use = executions?.get(only);
    for (const { confirmed, failed = [] } of outcomes) {
      for (const part of confirmed ? [confirmed] : failed) {
        const { billedGas, burn } = await findBurn({ network, payment: only, sent, receipt, use });
        part.billedGas = billedGas;
        part.burn = burn;
      }
    }
  }
  return {
    left: [...young, ...unexplained],
    isSpoilt: ranOut,
    outcomes: [
      {
        confirmed: {
          ids: idsOf(executed),
          inclusion,
          gasShare,
          excessGas:
            runsCode && sent
              ? excessGas(parseTransaction(sent.raw).data ?? "0x", receipt.gasUsed)
              : undefined,
        },
        failed: mismatched.map(({ payment }) => ({
          ids: [payment.id],
          reason: schemeOf(payment).reasons.transferMismatch,
          transactionId: transaction.id,
          inclusion,
          gasShare,
          billedGas: gasShare,
        })),
      },
      requeue(transaction, unfair),
      ...outcomes,
    ],
  };
}

async function explainAbsent(
  { rpc, finalAfter, lateLogs }: { rpc: Nodes; finalAfter: number; lateLogs?: LateLogs },
  absent: readonly OrderedPayment[],
  tried: Omit<Failure, "reason"> & { inclusion: Inclusion },
): Promise<{
  outcomes: PaymentOutcomes[];
  unexplained: OrderedPayment[];
  executions?: ReadonlyMap<OrderedPayment, Execution>;
}> {
  const searchable = absent.filter(({ payment }) => payment.unusedAtBlock !== undefined);
  const executions =
    searchable.length === 0
      ? new Map<OrderedPayment, Execution>()
      : await tryToFindExecutions({
          rpc,
          payments: searchable,
          toBlock: BigInt(tried.inclusion.blockNumber),
          finalAfter,
          lateLogs,
        });
  if (executions === undefined) return { outcomes: [], unexplained: [...absent] };
  const outcomes: PaymentOutcomes[] = [];
  const unexplained: OrderedPayment[] = [];
  for (const each of absent) {
    const reason = schemeOf(each.payment).reasons.executionFailed;
    const outcome = outcomeOf(each.payment.id, executions.get(each), { reason, ...tried });
    if (outcome) outcomes.push(outcome);
    else unexplained.push(each);
  }
  return { outcomes, unexplained, executions };
}

/**
 * A direct call of a payment's contract carries one payment. All else is a batch, also with one
 * payment left.
 */
function callsTarget(sent: Broadcast | undefined, payments: readonly OrderedPayment[]): boolean {
  const to = sent && parseTransaction(sent.raw).to?.toLowerCase();
  return payments.some(({ payment }) => schemeOf(payment).targetOf(payment.authorization) === to);
}

/** Calls that run out of gas take 63 of 64 parts of all: next to nothing is left. */
function isExhausted({ gasLimit }: OpenTransaction, { gasUsed }: TransactionReceipt): boolean {
  return gasUsed * 32n >= gasLimit * 31n;
}

/**
 * The transaction's gas in equal parts, one for each payment that it was signed for. Its rows do
 * not tell their number: a payment that is queued again leaves them.
 */
function gasShareOf(
  { broadcasts }: OpenTransaction,
  { gasUsed }: TransactionReceipt,
): bigint | undefined {
  const signed = broadcasts.find(({ content }) => content === "payments");
  if (signed === undefined) return undefined;
  return gasUsed / BigInt(countBatch(callDataOf(signed.raw)) ?? 1);
}

function requeue(
  { id: transactionId }: OpenTransaction,
  payments: readonly OrderedPayment[],
): PaymentOutcomes {
  return { requeued: { ids: idsOf(payments), transactionId } };
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
