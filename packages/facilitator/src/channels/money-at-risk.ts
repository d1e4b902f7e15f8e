import type { Channel } from "../ledger/channels/channel.ts";
import type { ChannelReading } from "../ledger/channels/channel-state.ts";

/**
 * Charged money that a running withdrawal takes away at its end, unless it is claimed before. The
 * rest of the channel stays there: a second withdrawal has a delay of its own. So a payer that
 * withdraws one unit, and buys on, sends no claim for each of its purchases.
 *
 * While a refund runs, all unclaimed money is at risk: a signed refund takes what the withdrawal
 * left.
 */
export function moneyAtRisk(
  { charged, isRefunding }: Pick<Channel, "charged" | "isRefunding">,
  {
    balance,
    totalClaimed,
    withdrawal,
  }: Pick<ChannelReading, "balance" | "totalClaimed" | "withdrawal">,
): bigint {
  if (withdrawal === undefined) return 0n;
  const left = balance > withdrawal.amount ? balance - withdrawal.amount : 0n;
  const safe = left > totalClaimed && !isRefunding ? left : totalClaimed;
  return charged > safe ? charged - safe : 0n;
}
