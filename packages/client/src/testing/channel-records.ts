import { channelIdOf, plasma, plasmaUsdt0, toLowerHex } from "@coinslot/protocol";
import type { ChannelRecord } from "../channels/channel-record.ts";

/** A channel that was never used. */
export function channelRecord(change: Partial<ChannelRecord> = {}): ChannelRecord {
  const config = {
    payer: `0x${"a1".repeat(20)}`,
    payerAuthorizer: `0x${"a1".repeat(20)}`,
    receiver: `0x${"b2".repeat(20)}`,
    receiverAuthorizer: `0x${"c3".repeat(20)}`,
    token: toLowerHex(plasmaUsdt0.address),
    withdrawDelay: 900,
    salt: `0x${"00".repeat(32)}`,
  } as const;
  return {
    id: channelIdOf(config, { network: plasma }),
    network: plasma,
    config,
    origin: "https://shop.example",
    url: "https://shop.example/weather",
    lane: 0,
    ceiling: 0n,
    charged: 0n,
    spent: 0n,
    balance: 0n,
    claimed: 0n,
    deposit: undefined,
    isWithdrawing: false,
    usedAt: 0,
    ...change,
  };
}
