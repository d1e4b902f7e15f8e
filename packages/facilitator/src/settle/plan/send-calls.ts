import type { Address, Hex } from "@coinslot/protocol";
import type { NewTransaction } from "../../ledger/transactions/store-transaction.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import type { Fees } from "../relay/fee-quote.ts";
import { priceOf } from "../relay/fees-by-each.ts";
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
  /**
   * Sent at the highest fees that an endpoint names, and at the cap where they are above it. Sent
   * beside any number in flight.
   */
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
  funds: Pick<RelayerFunds, "balanceFor" | "largestBalance">;
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
  const offers = isUrgent
    ? await network.fees.offers()
    : [await network.fees.quote()].filter((each) => each !== undefined);
  if (offers.length === 0) return "too_dear";
  const paying = await choosePaying(funds, able, { offers, gasLimit, isUrgent });
  if (paying === undefined) return "no_funds";
  const isStored = await storeBatch({
    context,
    network,
    chosen: [],
    alongside,
    call: { to, data, gasLimit },
    plannedAt,
    ...paying,
  });
  return isStored ? "stored" : "refused";
}

/**
 * The first relayer that can pay for a call, with the first fees that it can pay. For an urgent one
 * a node that shows too small a balance is not believed alone.
 */
async function choosePaying(
  funds: CallSender["funds"],
  able: readonly Relayer[],
  call: Pick<OwnCall, "gasLimit" | "isUrgent"> & { offers: readonly Fees[] },
): Promise<{ relayer: Relayer; fees: Fees } | undefined> {
  const options = call.offers.flatMap((fees) =>
    able.map((relayer) => {
      const cost = call.gasLimit * priceOf(fees) + costInFlight(relayer.state);
      return { relayer, fees, cost };
    }),
  );
  for (const { cost, ...option } of options) {
    if (cost <= (await funds.balanceFor(option.relayer.address, cost))) return option;
  }
  if (!call.isUrgent) return undefined;
  const balances = new Map(
    await Promise.all(
      able.map(async (each) => [each, await funds.largestBalance(each.address)] as const),
    ),
  );
  return options.find(({ relayer, cost }) => cost <= (balances.get(relayer) ?? 0n));
}

/** Half of the places are left to payments. */
function hasRoom({ state }: Relayer, { maxInFlight }: SettlementNetwork): boolean {
  const maxCallsInFlight = Math.max(1, Math.floor(maxInFlight / 2));
  return countInFlight(state) < maxInFlight && countCalls(state) < maxCallsInFlight;
}
