import type { Transaction } from "kysely";
import type { LedgerContext } from "../ledger-context.ts";
import { type CodeRefusal, readCodeAdmission } from "../payments/admit-code.ts";
import { gasWindowMs } from "../payments/code-budget.ts";
import { findCommitments } from "../payments/committed-balance.ts";
import { lockPayers } from "../payments/lock-payers.ts";
import type { LedgerSchema } from "../schema.ts";
import { countGas, findGasLimit, type GasLimit, type TakenGas, takeGasWith } from "./caller-gas.ts";
import { keyColumns } from "./channel.ts";
import {
  isDepositPending,
  type NewDeposit,
  type OpenDeposit,
  readDeposit,
} from "./channel-deposits.ts";
import { asRead } from "./move-deposit.ts";

/**
 * Bounds of deposits: each costs gas of the seller's. A deposit counts as often as a transaction
 * has carried it, and once at least: one that has failed may be brought again.
 */
export interface DepositLimits {
  /** Of one signer in a day. */
  perSigner: number;
  /** Of one payer in a day, that transactions carried in vain. Those under way count meanwhile. */
  failedPerPayer: number;
}

/** A deposit, with the facts that decide whether it is queued. */
export interface WantedDeposit extends NewDeposit, DepositFacts {
  limits: DepositLimits;
}

/** Facts of the moment, beside those of the deposit. */
export interface DepositFacts {
  /** Of the payer in the token, read after `sinceNumber`. */
  balance: bigint;
  /** The newest block of the chain. */
  sinceNumber: number;
  /** Gas of one caller in an hour. */
  callerGasPerHour: bigint;
}

/**
 * `queued`: it is on the disk. `known`: the ledger has it already, in any state but `failed`.
 * `busy`: another deposit of the channel is under way, or too many of the payer are. Or the payer
 * has committed its balance to others. `limited`: too many deposits. `burnt_gas`, `code_limited`:
 * as for payments of payers with code. `caller_limited`: its caller has no gas left. Nothing was
 * written but by `queued`.
 */
export type QueueOutcome =
  | { outcome: "queued" | "known" | "busy" }
  | { outcome: "limited"; retryAfterMs: number }
  | { outcome: "caller_limited"; limitedMs: number }
  | CodeRefusal;

const dayMs = 86_400_000;

/**
 * Queues a deposit, on the disk before it returns: any process with a relayer sends it from then
 * on. One that has failed is queued again. Its gas is spent in the same commit: of its caller, and
 * of the budget of payers with code.
 *
 * The racers:
 * - other deposits and payments of the payer, also the same one at another process: they lock the
 * payer's row first, so its commitments stay true until the commit;
 * - deposits and payments of other payers with code: they lock the budget's row;
 * - other deposits of one signer at once: they may pass its limit by one each.
 */
export function queueDeposit(ledger: LedgerContext, wanted: WantedDeposit): Promise<QueueOutcome> {
  return ledger.write<QueueOutcome>(async (transaction) => {
    const { dialect } = ledger;
    const payers = [wanted.payer];
    await lockPayers({ transaction, dialect, payers, now: ledger.now() });
    const reads = { db: transaction, dialect };
    const known = await readDeposit(reads, wanted);
    if (known !== undefined && known.state !== "failed") return { outcome: "known" };
    if (await isDepositPending(reads, wanted)) return { outcome: "busy" };
    const limited =
      (await findLimit(ledger, transaction, wanted)) ??
      (known && (await findBurntGas(ledger, transaction, wanted)));
    if (limited !== undefined) return limited;
    const admitted = await admitPayer(ledger, transaction, wanted);
    if ("outcome" in admitted) return admitted;
    const share = shareOf(wanted, wanted);
    const taken = share && (await takeGasWith(ledger, transaction, share));
    if (taken && "limitedMs" in taken) return { outcome: "caller_limited", ...taken };
    await writeQueued(ledger, transaction, wanted, { ...admitted, isKnown: known !== undefined });
    return { outcome: "queued" };
  });
}

/** `moved`: another process has moved it meanwhile. The others are those of a new deposit. */
export type RequeueOutcome = QueueOutcome | { outcome: "sent" | "moved" };

/**
 * `sent`, `done` → `queued`: its transaction has ended without it, or a reorganisation has taken it
 * back. It is tried and sent again while it is valid. The gas of that, and for one that was `done`
 * its promise, are within the limits of a new deposit. Else it stays as it is, and a later look
 * tries again.
 *
 * `done` → `sent` where its transaction waits for a block again: that needs no gas anew, and counts
 * in the commitments and in the budget whatever they are.
 *
 * The racers are those of `queueDeposit`.
 */
export function requeueDeposit(
  ledger: LedgerContext,
  deposit: OpenDeposit,
  facts: DepositFacts,
): Promise<RequeueOutcome> {
  return ledger.write<RequeueOutcome>(async (transaction) => {
    const { dialect } = ledger;
    await lockPayers({ transaction, dialect, payers: [deposit.payer], now: ledger.now() });
    const isOut = deposit.transaction?.state === "open";
    let vouched = {};
    if (deposit.state === "done") {
      if (await isDepositPending({ db: transaction, dialect }, deposit)) return { outcome: "busy" };
      if (!isOut) {
        const admitted = await admitPayer(ledger, transaction, { ...deposit, ...facts });
        if ("outcome" in admitted) return admitted;
        vouched = { is_vouched: admitted.isVouched ? 1 : 0 };
      }
    }
    const share = isOut ? undefined : shareOf(deposit, facts);
    const reads = { db: transaction, dialect, now: ledger.now };
    const limitedMs = share && (await findGasLimit(reads, share, share));
    if (limitedMs !== undefined) return { outcome: "caller_limited", limitedMs };
    const state = isOut ? "sent" : "queued";
    const spent_at = deposit.payerHasCode ? dialect.nowMs() : null;
    const queued = transaction
      .updateTable("channel_deposits")
      .set({ state, hash: null, block_number: null, spent_at, ...vouched });
    const { numUpdatedRows } = await asRead(queued, deposit).executeTakeFirst();
    if (numUpdatedRows !== 1n) return { outcome: "moved" };
    if (share !== undefined) await countGas(ledger, transaction, share);
    return { outcome: state };
  });
}

/** Gas that a deposit takes of its caller; `undefined`: it has none. */
function shareOf(
  { network, caller, gas }: Pick<NewDeposit, "network" | "caller" | "gas">,
  { callerGasPerHour: perHour }: DepositFacts,
): (GasLimit & TakenGas) | undefined {
  return caller === undefined ? undefined : { network, caller, perHour, gas, isByBuyer: true };
}

/**
 * Compares it with its payer's commitments; for a payer with code, with record and gas budget.
 */
async function admitPayer(
  { dialect, codePayers: limits }: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  { network, token, payer, nonce, ...wanted }: Omit<NewDeposit, "data"> & DepositFacts,
): Promise<{ isVouched: boolean } | QueueOutcome> {
  const id = { network, asset: token, payer, nonce };
  const balance = { amount: wanted.balance, blockNumber: BigInt(wanted.sinceNumber) };
  const promise = { id, value: wanted.amount, balance };
  const commitments = await findCommitments({
    transaction,
    dialect,
    requests: [promise],
    // One that was executed before is in no promise but this one.
    alreadyDebited: [nonce],
  });
  if (!commitments.fits(promise, 0n)) return { outcome: "busy" };
  const request = { id, gasAtRisk: wanted.payerHasCode ? wanted.gas : undefined };
  const code = await readCodeAdmission({ transaction, dialect, requests: [request], limits });
  return code.refuse(request, undefined) ?? { isVouched: code.isVouched(request) };
}

/** Writes the row, in place of one that has failed. */
async function writeQueued(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  deposit: NewDeposit,
  { isVouched, isKnown }: { isVouched: boolean; isKnown: boolean },
): Promise<void> {
  const { dialect } = ledger;
  const { encode } = dialect.amount;
  const { network, token, payer, nonce } = deposit;
  const written = {
    ...keyColumns(deposit),
    signer: deposit.signer,
    amount: encode(deposit.amount),
    valid_before: encode(deposit.validBefore),
    has_code: deposit.payerHasCode ? 1 : 0,
    data: deposit.data,
    since_number: deposit.sinceNumber,
    state: "queued",
    hash: null,
    reason: null,
    created_at: ledger.now(),
    ended_at: null,
    caller: deposit.caller ?? null,
    gas: Number(deposit.gas),
    is_vouched: isVouched ? 1 : 0,
    spent_at: deposit.payerHasCode ? dialect.nowMs() : null,
    block_number: null,
  } as const;
  if (!isKnown) {
    const row = { token, payer, nonce, ...written, attempts: 0, transaction_id: null };
    await transaction.insertInto("channel_deposits").values(row).execute();
    return;
  }
  await transaction
    .updateTable("channel_deposits")
    .set(written)
    .where("network", "=", network)
    .where("token", "=", token)
    .where("payer", "=", payer)
    .where("nonce", "=", nonce)
    .execute();
}

/**
 * The limit that a new deposit is beyond; `undefined`: none. Those of its payer that are under way
 * may all fail at once, where its balance goes before them: they take places among the failed ones,
 * with each transaction that has carried them, and the next one.
 */
async function findLimit(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  { network, signer, payer, limits }: WantedDeposit,
): Promise<QueueOutcome | undefined> {
  const now = ledger.now();
  const since = now - dayMs;
  const newest = transaction
    .selectFrom("channel_deposits")
    .select(["created_at", "attempts"])
    .orderBy("created_at", "desc")
    .where("created_at", ">", since);
  const waits: number[] = [];
  const count = async (query: typeof newest, most: number): Promise<number> => {
    // One of far ahead does not count: the clock that wrote it was put back since.
    const known = query.where("created_at", "<", now + dayMs);
    const rows = await known.limit(most).execute();
    let sum = 0;
    // The row with whose end there is room again.
    const oldest = rows.find(({ attempts }) => {
      sum += Math.max(1, attempts);
      return sum >= most;
    });
    if (oldest !== undefined) waits.push(oldest.created_at - since);
    return sum;
  };
  await count(newest.where("signer", "=", signer), limits.perSigner);
  const ofPayer = newest.where("payer", "=", payer);
  const failed = await count(
    ofPayer.where("state", "=", "failed").where("attempts", ">", 0),
    limits.failedPerPayer,
  );
  if (waits.length > 0) return { outcome: "limited", retryAfterMs: Math.max(...waits) };
  // A network whose node is down keeps its own.
  const underWay = await ofPayer
    .select("state")
    .where("network", "=", network)
    .where("state", "in", ["queued", "sent"])
    .limit(limits.failedPerPayer)
    .execute();
  let places = 0;
  for (const { state, attempts } of underWay) {
    places += Math.max(1, attempts + (state === "queued" ? 1 : 0));
  }
  return failed + places < limits.failedPerPayer ? undefined : { outcome: "busy" };
}

/**
 * The limit of a failed deposit that is brought again while its gas counts. It has one row in the
 * budget, which the new attempt takes: also one whose payer has no code any more.
 */
async function findBurntGas(
  { dialect }: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  { network, token, payer, nonce }: WantedDeposit,
): Promise<QueueOutcome | undefined> {
  const row = await transaction
    .selectFrom("channel_deposits")
    .select(["spent_at", dialect.nowMs().as("now_ms")])
    .where("network", "=", network)
    .where("token", "=", token)
    .where("payer", "=", payer)
    .where("nonce", "=", nonce)
    .executeTakeFirst();
  if (row === undefined || row.spent_at === null) return undefined;
  // After a clock that was set back, no more than the window.
  const leftMs = Math.min(gasWindowMs, row.spent_at + gasWindowMs - row.now_ms);
  if (leftMs <= 0) return undefined;
  return { outcome: "code_limited", why: "no_gas_left", retryAfterMs: leftMs };
}
