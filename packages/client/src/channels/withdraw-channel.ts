import { channelContracts, channelSettlementAbi, type Hex } from "@coinslot/protocol";
import { encodeFunctionData } from "viem";
import type { PayingFetchContext } from "../paying-fetch-options.ts";
import { PaymentError } from "../payment-error.ts";
import {
  awaitChain,
  type ChannelLedger,
  freeExposure,
  lookAtChain,
  maxPolls,
  type SeenChannel,
} from "./channel-ledger.ts";
import { type ChannelRecord, larger } from "./channel-record.ts";
import { sendTransaction } from "./send-transaction.ts";

/**
 * A step of a withdrawal without the seller.
 *
 * - `begun`: the seller has until `finalizeAfter` to claim what it is owed.
 * - `waiting`: that time is not over.
 * - `withdrawn`: the money is back.
 * - `nothing`: the escrow holds nothing that is not charged.
 */
export interface ChannelWithdrawal {
  id: Hex;
  state: "begun" | "waiting" | "withdrawn" | "nothing";
  /** In the token's smallest unit. */
  amount: bigint;
  /** Unix seconds: call again from then on. */
  finalizeAfter?: number | undefined;
  transaction?: Hex | undefined;
  /** The sum that the seller has given back just before, where it was asked first. */
  refunded?: bigint | undefined;
  /** Unix seconds until which a signed deposit may still be executed. */
  depositUntil?: number | undefined;
}

/**
 * Takes the next step of a withdrawal, under the lane's lock. It asks for all that is not charged:
 * what the seller has served stays for it to claim.
 *
 * @throws PaymentError as `sendTransaction`, and `chain_unreadable` when no endpoint returned the
 * channel
 */
export async function withdrawOnLane(
  context: PayingFetchContext,
  ledger: ChannelLedger,
  given: ChannelRecord,
): Promise<ChannelWithdrawal> {
  const seen = await lookAtChain(ledger, given);
  if (seen === undefined) {
    throw new PaymentError("chain_unreadable", "No endpoint returned the channel");
  }
  const { record, chain } = seen;
  const { id, config, network } = record;
  const { account, chains } = context;
  const nodes = chains.nodesOf(network);
  const send = (data: Hex) =>
    sendTransaction({ nodes, network, account, to: channelContracts.settlement, data });
  const abi = channelSettlementAbi;
  if (chain.withdrawal !== undefined) {
    const { amount, initiatedAt } = chain.withdrawal;
    const finalizeAfter = initiatedAt + config.withdrawDelay;
    if (chain.time < finalizeAfter) return { id, state: "waiting", amount, finalizeAfter };
    const functionName = "finalizeWithdraw";
    const transaction = await send(encodeFunctionData({ abi, functionName, args: [config] }));
    const isThere = (after: SeenChannel) => after.record.balance < record.balance;
    const after = await awaitChain(ledger, { record, polls: maxPolls, isThere });
    await freeExposure(ledger, record);
    // It has ended, whatever an endpoint shows that lies or lags.
    ledger.store.update(id, (stored) => ({ ...stored, isWithdrawing: false }));
    const left = after?.record.balance ?? record.balance;
    return { id, state: "withdrawn", amount: record.balance - left, transaction };
  }
  const amount = record.balance - larger(record.charged, record.claimed);
  if (amount <= 0n) {
    await freeExposure(ledger, record);
    return { id, state: "nothing", amount: 0n };
  }
  // Stored first: no voucher is signed once the seller may see the withdrawal.
  ledger.store.update(id, (stored) => ({ ...stored, isWithdrawing: true }));
  const args = [config, amount] as const;
  // It may have begun where this throws: a voucher looks at the chain before it is signed.
  const functionName = "initiateWithdraw";
  const transaction = await send(encodeFunctionData({ abi, functionName, args }));
  const isThere = (after: SeenChannel) => after.chain.withdrawal !== undefined;
  const begun = await awaitChain(ledger, { record, polls: maxPolls, isThere, hasBegun: true });
  const { initiatedAt = chain.time } = begun?.chain.withdrawal ?? {};
  return {
    id,
    state: "begun",
    amount,
    finalizeAfter: initiatedAt + config.withdrawDelay,
    transaction,
  };
}
