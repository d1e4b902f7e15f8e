import {
  CallerGoneError,
  CallerLimitedError,
  FacilitatorError,
  type Hex,
  keccak256,
} from "@coinslot/protocol";
import { bytesToHex, stringToBytes } from "viem";
import {
  CallTakenError,
  insertCall,
  type NewCallerCall,
  readCall,
} from "../../ledger/channels/caller-calls.ts";
import {
  findGasLimit,
  giveGasBack,
  type TakenGas,
  takeGas,
} from "../../ledger/channels/caller-gas.ts";
import { callByRelayer } from "../../settle/call-by-relayer.ts";
import type { CallOutcome } from "../../settle/plan/send-calls.ts";
import { gasLimitOf } from "../../settle/relay/gas.ts";
import { hasRoomFor, rememberSent } from "./caller-room.ts";
import type { HostedContext, Permit } from "./hosted-context.ts";

/** A call that passed its trials. */
export interface ReadyCall extends Pick<NewCallerCall, "id" | "kind" | "subject"> {
  data: Hex;
  /** Of the call, without its calldata. */
  gas: bigint;
  /** A payer withdraws: the fee may be as high as the cap. */
  isUrgent: boolean;
  leftOut?: string | undefined;
  /** Transaction of the same call that has ended; `undefined`: the ledger had none. */
  replaces: string | undefined;
}

const retryAfterSeconds = 5;

/** Identity of a call: a hash of its content. */
export function callIdOf(kind: string, parts: readonly (string | bigint)[]): Hex {
  return bytesToHex(keccak256(stringToBytes(JSON.stringify([kind, ...parts.map(String)]))));
}

/**
 * Takes the caller's gas, stores the call with its transaction, and sends it by a relayer of this
 * process. Nothing leaves the process before it is on the disk. Where another process was first,
 * its call is the one to follow.
 *
 * It waits for a relayer, or for a lower price of gas, for a part of the request's time.
 *
 * @throws CallerLimitedError, CallerGoneError, FacilitatorError where nothing was sent; RpcError,
 * DatabaseError where that is not known, and the same request finds out
 */
export async function sendCall(
  hosted: HostedContext,
  permitted: Permit,
  call: ReadyCall,
): Promise<void> {
  const { caller, network } = permitted;
  const { context, settlement, place, metrics } = network.escrow;
  const { ledger } = context;
  const { kind } = call;
  const gasLimit = gasLimitOf(call.data, call.gas);
  const share = { caller, network: place.network, ledger };
  const taken = await takeGasOf(hosted, share, { gas: gasLimit, isByBuyer: kind === "refund" });
  const send = () =>
    callByRelayer(settlement, {
      to: place.contract,
      data: call.data,
      gasLimit,
      isUrgent: call.isUrgent,
      alongside(transaction, transactionId) {
        const { id, subject, leftOut, replaces } = call;
        const row = { ...place, id, caller, kind, subject, leftOut };
        return insertCall(ledger, transaction, { ...row, replaces, transactionId });
      },
    });
  try {
    // One of a caller's calls waits for a relayer at a time: those of others do not wait behind
    // them.
    const turn = `${place.network}/caller/${caller}`;
    await hosted.turns.run(turn, () => keepSending(hosted, permitted, { call, send }));
    metrics.callerCalls.inc({ network: place.network, kind, outcome: "sent" });
  } catch (error) {
    const isTaken = error instanceof CallTakenError;
    // Anything else may have been stored, and its gas counts.
    if (isTaken || error instanceof FacilitatorError) await taken.giveBack();
    if (!isTaken) throw error;
  }
}

/** Sends a call as soon as its caller and a relayer have room. */
async function keepSending(
  hosted: HostedContext,
  permitted: Permit,
  { call, send }: { call: ReadyCall; send: () => Promise<CallOutcome> },
): Promise<void> {
  const { network, begunAt } = permitted;
  const { context, settlement, place } = network.escrow;
  const waitMs = settlement.network.times.settleTimeoutMs(0) / 2;
  for (;;) {
    if (permitted.isGone()) throw new CallerGoneError();
    const hasRoom = await hasRoomFor(hosted, permitted, call);
    const outcome = hasRoom ? await send() : "no_relayer";
    if (outcome === "stored") return rememberSent(hosted, permitted, call.id);
    const isLate = context.clock.now() >= begunAt + waitMs;
    if (outcome === "no_funds" || isLate) throw unavailable(outcome);
    await hosted.pause(network.deposits.pollMs());
    const now = await readCall(context.ledger, { ...place, id: call.id });
    if (now?.transactionId !== call.replaces) throw new CallTakenError("It was sent meanwhile");
  }
}

/**
 * Refuses a call before its trials where its caller has no gas for it: a trial costs a node's work.
 *
 * @throws CallerLimitedError
 */
export async function requireGas(
  { settings: { gasPerHour: perHour } }: HostedContext,
  { caller, network: { escrow } }: Permit,
  { data, gas, isByBuyer }: { data: Hex; gas: bigint; isByBuyer: boolean },
): Promise<void> {
  const limit = { caller, network: escrow.place.network, perHour };
  const wanted = { gas: gasLimitOf(data, gas), isByBuyer };
  const { ledger } = escrow.context;
  const limitedMs = await findGasLimit(ledger, limit, wanted);
  if (limitedMs !== undefined) throw outOfGas(limitedMs);
}

/**
 * Takes gas of a caller's share.
 *
 * @throws CallerLimitedError where it is used up
 */
async function takeGasOf(
  { settings: { gasPerHour: perHour } }: HostedContext,
  {
    ledger,
    ...share
  }: { caller: string; network: NewCallerCall["network"] } & {
    ledger: Parameters<typeof takeGas>[0];
  },
  wanted: TakenGas,
): Promise<{ giveBack: () => Promise<void> }> {
  const taken = await takeGas(ledger, { ...share, perHour }, wanted);
  if ("limitedMs" in taken) throw outOfGas(taken.limitedMs);
  return { giveBack: () => giveGasBack(ledger, taken.id) };
}

/** The caller's share of gas is used up, for this long. */
export function outOfGas(limitedMs: number): CallerLimitedError {
  return new CallerLimitedError("The caller has used up its gas of an hour", {
    retryAfterSeconds: Math.ceil(limitedMs / 1_000),
  });
}

/** Nothing was written, and the same request may come again. */
export function unavailable(because: string): FacilitatorError {
  return new FacilitatorError(`The call cannot be sent at the moment: ${because}`, {
    kind: "unavailable",
    retryAfterSeconds,
  });
}
