import * as z from "zod";
import type { KnownChannel } from "../../ledger/channels/find-channels.ts";
import { isoOfNode, moneySchema, toIso, toMoney } from "../../reads/wire-forms.ts";
import { unclaimedOf } from "../claims/sum-claims.ts";
import { moneyAtRisk } from "../money-at-risk.ts";

/** A channel on the wire of the operator's commands. */
export const channelRecordSchema = z.object({
  id: z.string(),
  network: z.string(),
  /** The escrow. */
  contract: z.string(),
  payer: z.string(),
  /** Signs the vouchers. */
  payerAuthorizer: z.string(),
  receiver: z.string(),
  /** Signs claims. */
  receiverAuthorizer: z.string(),
  token: z.string(),
  withdrawDelaySeconds: z.number(),
  /**
   * `open`, `withdrawing`, `refunding`, `exhausted` or `owing`; `unread` before its first reading.
   */
  state: z.string(),
  charged: moneySchema,
  /** At the head of the chain. */
  claimed: moneySchema,
  /** Charged and not claimed. */
  unclaimed: moneySchema,
  /** Of that, the part that the payer withdraws. */
  atRisk: moneySchema,
  /** Charged, and no longer to be claimed. */
  lost: moneySchema,
  /** The buyer's own at the escrow: not claimed. */
  locked: moneySchema,
  createdAt: z.string(),
  lastChargeAt: z.string().nullable(),
  /** The oldest charge that is not claimed. */
  unclaimedSince: z.string().nullable(),
  /** `deadline`: from then on the payer may take it away. */
  withdrawal: z
    .object({ amount: moneySchema, initiatedAt: z.string(), deadline: z.string() })
    .nullable(),
  /** The last failed trial of its claim; `null` without one since its last claim. */
  refusal: z.object({ error: z.string(), at: z.string() }).nullable(),
});

/** A channel as an operator's command returns it. */
export type ChannelRecord = z.output<typeof channelRecordSchema>;

/** The wire's form of a channel. */
export function toChannelRecord(known: KnownChannel): ChannelRecord {
  const { channel, config, state, since, createdAt, refusal } = known;
  const { network, contract, channelId } = channel;
  const { withdrawal } = state ?? {};
  const money = (value: bigint) => toMoney(network, config.token, value);
  const seconds = (time: number) => isoOfNode(time * 1_000);
  return {
    id: channelId,
    network,
    contract,
    payer: config.payer,
    payerAuthorizer: config.payerAuthorizer,
    receiver: config.receiver,
    receiverAuthorizer: config.receiverAuthorizer,
    token: config.token,
    withdrawDelaySeconds: config.withdrawDelay,
    state: stateOf(known),
    charged: money(channel.charged),
    claimed: money(state?.totalClaimed ?? 0n),
    unclaimed: money(unclaimedOf(known)),
    atRisk: money(state === undefined ? 0n : moneyAtRisk(channel, state)),
    lost: money(channel.lost),
    locked: money(state === undefined ? 0n : state.balance - state.totalClaimed),
    createdAt: new Date(createdAt).toISOString(),
    lastChargeAt: toIso(channel.last?.at),
    unclaimedSince: unclaimedOf(known) === 0n ? null : toIso(since),
    withdrawal:
      withdrawal === undefined
        ? null
        : {
            amount: money(withdrawal.amount),
            initiatedAt: seconds(withdrawal.initiatedAt),
            deadline: seconds(withdrawal.initiatedAt + config.withdrawDelay),
          },
    refusal: refusal === undefined ? null : { error: refusal.error, at: isoOf(refusal.at) },
  };
}

/** As the README of the scheme derives it: a later line wins. */
function stateOf({ channel, state }: KnownChannel): string {
  if (channel.lost > 0n) return "owing";
  if (channel.isRefunding) return "refunding";
  if (state === undefined) return "unread";
  if (state.withdrawal !== undefined) return "withdrawing";
  return channel.secure > channel.charged ? "open" : "exhausted";
}

function isoOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
