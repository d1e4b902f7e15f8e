import type { SettlementNetwork } from "../context.ts";
import type { Fees } from "../relay/fee-quote.ts";
import { priceOf } from "../relay/fees-by-each.ts";
import type { Relayer } from "../relay/relayer-context.ts";
import type { RelayerFunds } from "../relay/relayer-funds.ts";
import { costInFlight } from "../relay/relayer-state.ts";
import { type ComposedCall, composeCall } from "./compose-call.ts";
import type { PreparedCandidate } from "./prepare-candidates.ts";

/**
 * The part of a batch that the relayer can pay for, besides its transactions in flight. Nodes
 * refuse a transaction that it cannot pay. All later nonces would then wait until the relayer is
 * funded.
 *
 * @returns `undefined` when it cannot pay for one payment.
 */
export async function fitBalance(options: {
  network: SettlementNetwork;
  relayer: Relayer;
  funds: RelayerFunds;
  chosen: readonly PreparedCandidate[];
  fees: Fees;
}): Promise<{ chosen: readonly PreparedCandidate[]; call: ComposedCall } | undefined> {
  const { relayer, funds, fees } = options;
  const { multicall3, callGasCap } = options.network;
  const settlesAlone = options.chosen[0]?.payment.settlesAlone === true;
  const spoken = costInFlight(relayer.state);
  let balance: bigint | undefined;
  for (let { chosen } = options; ; chosen = firstHalf(chosen)) {
    const [first, ...others] = chosen;
    if (first === undefined) {
      // Transactions in flight give back the gas money that they do not use. A payment that goes
      // alone costs more than most: its relayer may pay for the others.
      if (spoken === 0n && !settlesAlone) funds.cannotPay(relayer.address);
      return undefined;
    }
    const call = composeCall({ chosen: [first, ...others], multicall3, callGasCap });
    const cost = call.gasLimit * priceOf(fees) + spoken;
    balance ??= await funds.balanceFor(relayer.address, cost);
    if (cost <= balance) return { chosen, call };
  }
}

function firstHalf(chosen: readonly PreparedCandidate[]): readonly PreparedCandidate[] {
  return chosen.slice(0, Math.floor(chosen.length / 2));
}
