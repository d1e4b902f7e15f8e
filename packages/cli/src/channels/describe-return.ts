import type { ChannelRefund, ChannelWithdrawal } from "@coinslot/client";
import { amountText, timeText } from "./channel-file.ts";

type Channel = Parameters<typeof amountText>[0];

/** Says how much of a channel's money is back, and the next step. */
export function describeReturn(
  channel: Channel,
  result: ChannelRefund | ChannelWithdrawal,
): string {
  const refunded = "refunded" in result ? result.refunded : undefined;
  const step = describeStep(channel, result) + describeDeposit(result);
  if (refunded === undefined) return step;
  return `The seller has given back ${amountText(channel, refunded)}. ${step}`;
}

function describeDeposit({ depositUntil }: ChannelRefund | ChannelWithdrawal): string {
  if (depositUntil === undefined) return "";
  const until = timeText(depositUntil * 1000);
  return ` A signed deposit may be executed until ${until} UTC: run this again after that.`;
}

function describeStep(channel: Channel, result: ChannelRefund | ChannelWithdrawal): string {
  const amount = amountText(channel, result.amount);
  const isNone = result.amount === 0n;
  switch (result.state) {
    case "refunded":
      return `The seller has given back ${amount}.`;
    case "withdrawn":
      if (isNone) return "The withdrawal has ended, and nothing came back.";
      return `Withdrawn: ${amount}.`;
    case "nothing":
      return "The escrow holds nothing that is not charged.";
    case "begun":
    case "waiting": {
      const at =
        result.finalizeAfter === undefined ? "its delay" : timeText(result.finalizeAfter * 1000);
      return `The withdrawal of ${amount} has begun. Run this again after ${at} UTC.`;
    }
    case "refused":
    case "silent":
      if (isNone) return "The seller has given nothing back.";
      return `The seller has given back ${amount}, and not all.`;
  }
}
