import type { Address, Hex } from "@coinslot/protocol";
import type { NewTransaction } from "../../ledger/transactions/store-transaction.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import { priceOf } from "../relay/fee-quote.ts";
import { isReady, type Relayer } from "../relay/relayer-context.ts";
import type { RelayerFunds } from "../relay/relayer-funds.ts";
import { costInFlight, countCalls, countInFlight } from "../relay/relayer-state.ts";
import { storeBatch } from "./store-batch.ts";

/**
 * A transaction of ours that no payer has authorized, such as a claim of channels. It shares the
 * payments' relayers, nonces, leases and replacements, and has a transaction of its own.
 */
export interface OwnCall {
  to: Address;
  data: Hex;
  gasLimit: bigint;
  /** Sent at the cap on fees where the chain asks for more, and beside any number in flight. */
  isUrgent: boolean;
  /** Writes its rows in the database transaction that stores it. */
  alongside: NonNullable<NewTransaction["alongside"]>;
}

/**
 * `stored`: on the disk, and on its way. Otherwise nothing was written: no relayer here has room or
 * can pay, gas costs more than the cap, or the relayer has changed.
 */
export type CallOutcome = "stored" | "no_relayer" | "too_dear" | "no_funds" | "refused";

/** A call that waits for the next plan. */
export interface WaitingCall {
  call: OwnCall;
  end: (outcome: CallOutcome) => void;
  fail: (reason: unknown) => void;
}

/** The parts of a network's engine that send calls. */
export interface CallSender {
  context: SettlementContext;
  network: SettlementNetwork;
  funds: Pick<RelayerFunds, "balanceFor">;
  calls: WaitingCall[];
}

/** Calls of one plan: the payments of the plan wait for them. */
const maxCalls = 4;

/**
 * Sends calls that wait, the urgent ones first. It runs within the plan, since nonces are given out
 * there alone. A fault of one call is that call's.
 *
 * @returns whether some are left for the next plan
 */
export async function sendCalls(
  sender: CallSender,
  relayers: readonly Relayer[],
): Promise<boolean> {
  const { calls } = sender;
  // Stable: otherwise in the order in which they came.
  calls.sort((a, b) => Number(b.call.isUrgent) - Number(a.call.isUrgent));
  for (const { call, end, fail } of calls.splice(0, maxCalls)) {
    try {
      end(await sendCall(sender, relayers, call));
    } catch (error) {
      fail(error);
    }
  }
  return calls.length > 0;
}

async function sendCall(
  { context, network, funds }: CallSender,
  relayers: readonly Relayer[],
  { to, data, gasLimit, isUrgent, alongside }: OwnCall,
): Promise<CallOutcome> {
  const able = relayers
    .filter((each) => isReady(each) && (isUrgent || hasRoom(each, network)))
    .sort((a, b) => countInFlight(a.state) - countInFlight(b.state));
  if (able.length === 0) return "no_relayer";
  const plannedAt = context.clock.now();
  const quoted = await network.fees.quote();
  const fees = quoted ?? (isUrgent ? await network.fees.ceiling() : undefined);
  if (fees === undefined) return "too_dear";
  for (const relayer of able) {
    const cost = gasLimit * priceOf(fees) + costInFlight(relayer.state);
    if (cost > (await funds.balanceFor(relayer.address, cost))) continue;
    const isStored = await storeBatch({
      context,
      network,
      relayer,
      chosen: [],
      alongside,
      call: { to, data, gasLimit },
      fees,
      plannedAt,
    });
    return isStored ? "stored" : "refused";
  }
  return "no_funds";
}

/** Half of the places are left to payments. */
function hasRoom({ state }: Relayer, { maxInFlight }: SettlementNetwork): boolean {
  const maxCallsInFlight = Math.max(1, Math.floor(maxInFlight / 2));
  return countInFlight(state) < maxInFlight && countCalls(state) < maxCallsInFlight;
}
