import type { Address, ChannelRefusalReason, Hex } from "@coinslot/protocol";
import { findOpenDeposits, type OpenDeposit } from "../../ledger/channels/channel-deposits.ts";
import {
  endDeposit,
  failDeposit,
  recordDeposited,
  recordDepositSent,
} from "../../ledger/channels/move-deposit.ts";
import { requeueDeposit } from "../../ledger/channels/queue-deposit.ts";
import { readBlockTime } from "../../ledger/queries/common-time.ts";
import { callByRelayer } from "../../settle/call-by-relayer.ts";
import { tryAsSent } from "../../settle/plan/try-as-sent.ts";
import { isReady } from "../../settle/relay/relayer-context.ts";
import type { EscrowContext } from "../channels-context.ts";
import {
  findExecution,
  hasCode,
  isNonceUsed,
  passesTrial,
  readBalance,
  readCarrier,
  readTimedBlock,
  type TimedBlock,
} from "./deposit-evidence.ts";
import { depositGasLimit, usedMuchGas } from "./deposit-gas.ts";
import { type DepthLook, isUsedAtDepth } from "./is-used-at-depth.ts";

/** Deposits in one look, of each kind. */
const page = 200;
/** Time for the logs of an executed deposit. */
const proofMs = 600_000;
/** Time for a deposit that passes its trial at the head, and not as it would be sent. */
const doubtMs = 60_000;
/** Transactions of one deposit that may be lost. */
const maxAttempts = 3;

const failures = {
  expired: "invalid_batch_settlement_evm_payload_authorization_valid_before",
  refused: "invalid_batch_settlement_evm_deposit_simulation_failed",
  inVain: "invalid_batch_settlement_evm_deposit_transaction_failed",
} as const satisfies Record<string, ChannelRefusalReason>;

/** The last deposits of the last pages, where there may be more. */
export interface DepositPages {
  pending: OpenDeposit | undefined;
  executed: OpenDeposit | undefined;
}

/**
 * Brings open deposits on, page by page: queued ones are tried and sent, sent ones are followed,
 * and executed ones end once they are final. A process may die at any step, and any process goes
 * on.
 *
 * @param options.pages of the looks of this process: deposits that wait hold up none behind them
 * @returns `pending`: one has no outcome yet. `settling`: one is not final. `idle`: all have ended
 * @throws RpcError, DatabaseError where nothing can be read
 */
export async function followDeposits(
  channels: EscrowContext,
  { callerGasPerHour, pages }: Pick<Look, "callerGasPerHour"> & { pages: DepositPages },
): Promise<"pending" | "settling" | "idle"> {
  const { context, settlement, place } = channels;
  const { logger } = context;
  const { network } = settlement;
  const pending = await nextPage(channels, pages, "pending");
  const executed = await nextPage(channels, pages, "executed");
  const open = [...pending, ...executed];
  if (open.length === 0) return "idle";
  const head = Number((await network.watcher.read(network.pollMs / 2)).number);
  const blocks = new Map<number, Promise<TimedBlock | undefined>>();
  const look: Look = {
    head,
    callerGasPerHour,
    blockAt(depth) {
      const block = blocks.get(depth) ?? readTimedBlock(network.rpc, head - depth);
      blocks.set(depth, block);
      return block;
    },
  };
  const looks = await Promise.allSettled(
    open.map((deposit) => followDeposit(channels, deposit, look)),
  );
  for (const each of looks) {
    if (each.status === "fulfilled") continue;
    logger.warn(
      { err: each.reason, network: place.network },
      "a deposit could not be followed; retrying",
    );
  }
  return pending.length > 0 ? "pending" : "settling";
}

/** The page behind the last one; after the end, the first one. */
async function nextPage(
  { context: { ledger }, place }: EscrowContext,
  pages: DepositPages,
  kind: keyof DepositPages,
): Promise<OpenDeposit[]> {
  const all = { ...place, isExecuted: kind === "executed", limit: page };
  let found = await findOpenDeposits(ledger, { ...all, after: pages[kind] });
  if (found.length === 0 && pages[kind] !== undefined) {
    found = await findOpenDeposits(ledger, all);
  }
  pages[kind] = found.length < page ? undefined : found.at(-1);
  return found;
}

interface Look extends DepthLook {
  /** Gas of one caller of a hosted facilitator in an hour. */
  callerGasPerHour: bigint;
}

async function followDeposit(
  channels: EscrowContext,
  deposit: OpenDeposit,
  look: Look,
): Promise<void> {
  const { context, settlement, metrics, place } = channels;
  const { network } = settlement;
  const { ledger } = context;
  const { rpc } = network;
  const depth = network.serveAfter({ value: deposit.amount });
  const served = await look.blockAt(depth);
  if (served === undefined) return;
  const seen = { served, depth, look };
  if (deposit.state === "done") return followExecuted(channels, deposit, seen);
  if (await isUsedAtDepth(channels, deposit, seen)) {
    // A node may have named a number that no chain had come to.
    const since = Math.min(deposit.sinceNumber, served.number);
    const from = Math.max(0, since - network.finalAfter);
    const carrier = await readCarrier(ledger, rpc, deposit);
    const execution = await findExecution(rpc, deposit, { from, to: served.number, carrier });
    if (execution?.kind === "deposited") {
      const isDear = usedMuchGas(deposit, carrier);
      if (!(await recordDeposited(ledger, deposit, { ...execution, isDear }))) return;
      metrics.deposits.inc({ network: place.network, outcome: "done" });
      return context.faultPoint("deposit_recorded");
    }
    if (execution !== undefined) return fail(channels, deposit, failures.inVain);
    return endUnproven(channels, deposit, seen);
  }
  // By another sender, or by ours a moment ago: its depth decides.
  if (await isNonceUsed(rpc, deposit)) return;
  if (await isOver(channels, deposit, served)) return fail(channels, deposit, failures.expired);
  if (deposit.state === "queued") return send(channels, deposit);
  return followSent(channels, deposit, seen);
}

/**
 * Whether a block is past the time of a deposit. One node alone says that time, so a clock has to
 * be there, too.
 */
async function isOver(
  { context: { ledger } }: EscrowContext,
  { validBefore }: OpenDeposit,
  { time }: TimedBlock,
): Promise<boolean> {
  const timestamp = BigInt(time);
  if (timestamp < validBefore) return false;
  return (await readBlockTime(ledger, { timestamp })) >= validBefore;
}

/** A look, and the block that a deposit of this amount has to be in. */
interface ServedLook {
  served: TimedBlock;
  depth: number;
  look: Look;
}

/**
 * Its authorization is used, and no node returns the logs of that. It is given up once the use is
 * final and the logs have had their time: an open deposit lets no other one into its channel. The
 * money, if it is there, is in the channel's mirror, and buys by vouchers.
 */
async function endUnproven(
  channels: EscrowContext,
  deposit: OpenDeposit,
  seen: ServedLook,
): Promise<void> {
  const { context, place } = channels;
  // Or the clock was set back since, by as much.
  const isOld = Math.abs(context.ledger.now() - deposit.createdAt) >= proofMs;
  if (!isOld || !(await isUsedFinally(channels, deposit, seen.look))) return;
  context.logger.error(
    { network: place.network, channel: deposit.channelId },
    "a deposit was executed, and no node returns its logs; its channel's balance decides",
  );
  await fail(channels, deposit, failures.inVain);
}

/** Executed `serveAfter` deep before. A reorganisation may have taken it back since. */
async function followExecuted(
  channels: EscrowContext,
  deposit: OpenDeposit,
  { served, depth, look }: ServedLook,
): Promise<void> {
  const { ledger } = channels.context;
  const { rpc } = channels.settlement.network;
  if (await isUsedAtDepth(channels, deposit, { depth, look })) {
    if (await isUsedFinally(channels, deposit, look)) await endDeposit(ledger, deposit);
    return;
  }
  if (await isNonceUsed(rpc, deposit)) return;
  if (await isOver(channels, deposit, served)) return fail(channels, deposit, failures.expired);
  await requeue(channels, deposit, look);
}

function isUsedFinally(channels: EscrowContext, deposit: OpenDeposit, look: DepthLook) {
  const { finalAfter: depth } = channels.settlement.network;
  return isUsedAtDepth(channels, deposit, { depth, look });
}

/** Within the limits of a new deposit: until there is room, each look tries again. */
async function requeue(
  { context: { ledger, logger }, settlement: { network }, place }: EscrowContext,
  deposit: OpenDeposit,
  { head: sinceNumber, callerGasPerHour }: Look,
): Promise<void> {
  // Before the balance: what was executed in between counts as committed once more, and never less.
  const balance = await readBalance(network.rpc, deposit);
  const facts = { balance, sinceNumber, callerGasPerHour };
  const { outcome } = await requeueDeposit(ledger, deposit, facts);
  if (outcome === "moved") return;
  const found = { network: place.network, channel: deposit.channelId, outcome };
  if (deposit.state !== "done") {
    return logger.debug(found, "a deposit has lost its transaction");
  }
  logger.warn(
    found,
    "a reorganisation has taken a deposit back; it is sent again while it is valid",
  );
}

/**
 * Its transaction has ended without it, or may still execute it. One that a block has carried it in
 * for nothing has burnt gas: it is brought again by its buyer, within the limits.
 */
async function followSent(
  channels: EscrowContext,
  deposit: OpenDeposit,
  { served, look }: ServedLook,
): Promise<void> {
  const { transaction } = deposit;
  if (transaction?.state === "open") return;
  if (transaction?.state === "included" && transaction.blockNumber > served.number) return;
  const isInVain = transaction?.state === "included" || deposit.attempts >= maxAttempts;
  if (isInVain) return fail(channels, deposit, failures.inVain);
  await requeue(channels, deposit, look);
}

/**
 * Tries a queued deposit as its transaction, and sends it by a relayer of this process, if there is
 * one. A payer that has got code since it was queued is not among those that are limited as such.
 */
async function send(channels: EscrowContext, deposit: OpenDeposit): Promise<void> {
  const { context, settlement, metrics, place } = channels;
  const { network } = place;
  const { data } = deposit;
  const { rpc } = settlement.network;
  const relayer = settlement.relayers.find(isReady);
  // Another process has one, or this one will.
  if (relayer === undefined || data === undefined) return;
  if (!deposit.payerHasCode && (await hasCode(rpc, deposit))) {
    return fail(channels, deposit, failures.refused);
  }
  const gasLimit = depositGasLimit(channels, { ...deposit, data });
  const tried = await tryAgain(channels, deposit, {
    from: relayer.address,
    to: place.contract,
    data,
    gasLimit,
  });
  if (tried === "fails") return fail(channels, deposit, failures.refused);
  if (tried === "waits") return;
  const outcome = await callByRelayer(settlement, {
    to: place.contract,
    data,
    gasLimit,
    isUrgent: false,
    alongside: (transaction, transactionId) =>
      recordDepositSent(transaction, { deposit, transactionId }),
  });
  if (outcome === "stored") return metrics.deposits.inc({ network, outcome: "sent" });
  context.logger.debug({ network, because: outcome }, "a deposit waits");
}

/**
 * The last trial: with the fees of the transaction, at the pending block. Another sender's
 * execution may wait in that block, so a revert there alone ends nothing at once. The relayer that
 * sends may be another one, with more funds: a node that refuses the fees decides nothing.
 */
async function tryAgain(
  { context, settlement: { network } }: EscrowContext,
  deposit: OpenDeposit,
  call: { from: Address; to: Address; data: Hex; gasLimit: bigint },
): Promise<"passes" | "fails" | "waits"> {
  const fees = await network.fees.quote();
  if (fees === undefined) return "waits";
  const tried = await tryAsSent({ network, from: call.from, call, fees });
  if (tried === "passes") return "passes";
  if (!(await passesTrial(network.rpc, call))) {
    // Executed in the meantime, by any sender: the next look finds it.
    return (await isNonceUsed(network.rpc, deposit)) ? "waits" : "fails";
  }
  if (tried === "unknown") return "passes";
  const isOld = Math.abs(context.ledger.now() - deposit.createdAt) >= doubtMs;
  return isOld ? "fails" : "waits";
}

async function fail(
  { context: { ledger, logger }, metrics, place: { network } }: EscrowContext,
  deposit: OpenDeposit,
  reason: ChannelRefusalReason,
): Promise<void> {
  if (!(await failDeposit(ledger, deposit, { reason }))) return;
  metrics.deposits.inc({ network, outcome: "failed" });
  logger.info({ network, channel: deposit.channelId, reason }, "a deposit has failed");
}
