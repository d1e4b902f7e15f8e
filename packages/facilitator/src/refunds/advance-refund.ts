import type { Address } from "@coinslot/protocol";
import { isFloatStopped } from "../ledger/maintenance/stops.ts";
import type { RefundChange } from "../ledger/refunds/move-refund.ts";
import type { RefundRow } from "../ledger/refunds/refund-row.ts";
import {
  findRefundedPayment,
  findRefundsOf,
  type RefundedPayment,
  sumOfRefunds,
} from "../ledger/refunds/refund-row.ts";
import { endedRefundStates } from "../ledger/refunds-schema.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { adoptRefund } from "./adopt-refund.ts";
import { followRefund } from "./follow-refund.ts";
import { isFreeOf } from "./is-free-of.ts";
import { isPaymentOnChain } from "./is-payment-on-chain.ts";
import { lacksAuthorizations } from "./lacks-authorizations.ts";
import { type RefundReading, readRefund } from "./read-chain.ts";
import { later, looks, type RefundsContext } from "./refunds-context.ts";
import { signRefund } from "./sign-refund.ts";

/**
 * Looks at a refund, and returns its change; `undefined`: it was written with its operation.
 *
 * @throws RpcError, ZodError, FacilitatorError when the chain cannot be read
 */
export async function advanceRefund(
  refunds: RefundsContext,
  row: RefundRow,
): Promise<RefundChange | undefined> {
  switch (row.state) {
    case "sent":
    case "confirmed":
      return followRefund(refunds, row);
    case "final":
    case "void":
      return undefined;
    case "manual":
      // The operator was told to send it, and may have done so: only their word lets it go on.
      return later(refunds, looks.rare, { state: row.state, cause: row.cause });
    default:
      return prepareRefund(refunds, row);
  }
}

/** From `scheduled` and each wait to its signature. */
async function prepareRefund(
  refunds: RefundsContext,
  row: RefundRow,
): Promise<RefundChange | undefined> {
  const { context } = refunds;
  const { ledger } = context;
  const { amount: amounts } = ledger.dialect;
  const settlement = refunds.settlements.get(row.network);
  const payment = await findRefundedPayment(ledger, row.payment_id);
  if (settlement === undefined || payment === undefined) {
    return later(refunds, looks.waiting, { state: "waiting", cause: "chain" });
  }
  const change = await scheduleRefund(refunds, row, payment);
  if (change !== undefined) return change;
  const value = amounts.decode(row.amount);
  const accounts = await accountsOf(refunds, row);
  const { float } = refunds.settings;
  const reading = await readRefund(settlement.network, row, { accounts, float, value });
  const [account] = reading.usedBy;
  if (account !== undefined) {
    return adoptRefund(refunds, { row, payment, settlement, account, value, reading });
  }
  const wait = await findWait(refunds, { row, settlement, reading, value });
  if (wait !== undefined) return wait;
  // The row's own account was asked about before.
  const others = accounts.filter((each) => each !== float && each !== row.float);
  const isSafe =
    (await isFreeOf(refunds, { row, accounts: others })) &&
    (await isPaymentOnChain(ledger, settlement, payment));
  if (!isSafe) {
    return later(refunds, looks.waiting, { state: "waiting", cause: "chain" });
  }
  return signRefund(refunds, { row, settlement, reading, value });
}

/** The change of a refund whose payment, or an earlier refund, decides first. */
async function scheduleRefund(
  refunds: RefundsContext,
  row: RefundRow,
  payment: RefundedPayment,
): Promise<RefundChange | undefined> {
  const { ledger } = refunds.context;
  const { dialect } = ledger;
  const isNeverSigned = row.valid_before === null;
  const { state, closedAt } = payment;
  const isNeverExecuted = state === "expired" || (state === "failed" && closedAt !== null);
  if (isNeverExecuted && isNeverSigned) {
    return later(refunds, 0, { state: "void", cause: "payment_not_executed" });
  }
  const all = await findRefundsOf(ledger, row.payment_id);
  const earlier = all.filter(({ n }) => n < row.n);
  if (earlier.some((each) => !endedRefundStates.some((ended) => ended === each.state))) {
    return later(refunds, looks.soon, { state: "scheduled", cause: "earlier_refund" });
  }
  if (state !== "confirmed" || !payment.isFinal) {
    return later(refunds, looks.soon, { state: "scheduled", cause: "payment_not_final" });
  }
  const left = payment.value - sumOfRefunds(earlier, dialect);
  if (!isNeverSigned || dialect.amount.decode(row.amount) <= left) return undefined;
  // An earlier refund was found executed with more than was asked for.
  if (row.requested === null && left > 0n) {
    return later(refunds, 0, {
      state: "scheduled",
      cause: null,
      amount: dialect.amount.encode(left),
    });
  }
  return later(refunds, 0, { state: "void", cause: "nothing_left" });
}

/** Accounts that may have signed this refund, in this ledger or in one that was lost. */
export async function accountsOf(
  { settings, readFloats }: RefundsContext,
  row: RefundRow,
): Promise<readonly Address[]> {
  const floats = [row.float, settings.float, ...settings.formerFloats];
  const known = await readFloats();
  return [...new Set([...floats, ...known].filter((each) => each !== null && each !== undefined))];
}

/** The reason to sign nothing now. */
async function findWait(
  refunds: RefundsContext,
  options: {
    row: RefundRow;
    settlement: NetworkSettlement;
    reading: RefundReading;
    value: bigint;
  },
): Promise<RefundChange | undefined> {
  const { row, settlement, reading, value } = options;
  const { settings } = refunds;
  const { float, sign } = settings;
  const needsReview =
    reading.payerHasCode && settings.payersWithCode === "review" && row.approved_at === null;
  if (needsReview) {
    return later(refunds, looks.rare, { state: "review", cause: "payer_has_code" });
  }
  // A token without EIP-3009 shows no use, by a former float neither: it needs no float.
  if (reading.isUnreadable) {
    return (await lacksAuthorizations(settlement, row))
      ? later(refunds, looks.rare, { state: "manual", cause: "no_eip3009" })
      : later(refunds, looks.waiting, { state: "waiting", cause: "chain" });
  }
  const isHeldElsewhere =
    row.float !== null &&
    row.float !== float &&
    !(await isFreeOf(refunds, { row, accounts: [row.float] }));
  if (isHeldElsewhere || float === undefined || sign === undefined) {
    return later(refunds, looks.waiting, { state: "unsigned", cause: "no_float" });
  }
  if (await isFloatStopped(refunds.context.ledger.db, float)) {
    return later(refunds, looks.waiting, { state: "waiting", cause: "stopped" });
  }
  if (reading.balance === undefined) {
    return later(refunds, looks.waiting, { state: "waiting", cause: "chain" });
  }
  if (reading.balance < value) {
    return later(refunds, looks.waiting, { state: "waiting", cause: "float_balance" });
  }
  if (reading.isRefused) {
    return later(refunds, looks.rare, { state: "blocked", cause: "token_refuses" });
  }
  return undefined;
}
