import type { Address } from "@coinslot/protocol";
import * as z from "zod";
import type { ChannelContract } from "../../ledger/channels/channel-state.ts";
import { readWatch } from "../../ledger/channels/channel-watch.ts";
import { type ClaimableChannel, eachClaimable } from "../../ledger/channels/claimable.ts";
import { sumChannels } from "../../ledger/channels/sum-channels.ts";
import type { LedgerReads } from "../../ledger/ledger-context.ts";
import { inSnapshot } from "../../ledger/ledger-reads.ts";
import { readDatabaseNow } from "../../ledger/queries/common-time.ts";
import { defineOperation } from "../../operators/operation.ts";
import { isoOfNode, moneySchema, toIso, toMoney } from "../../reads/wire-forms.ts";
import { sumClaims, unclaimedOf } from "../claims/sum-claims.ts";

export const channelTotalsResult = z.object({
  /** By network and token. */
  totals: z.array(
    z.object({
      network: z.string(),
      /** The escrow. */
      contract: z.string(),
      token: z.string(),
      channels: z.number(),
      /** Channels with unclaimed money. */
      due: z.number(),
      charged: moneySchema,
      unclaimed: moneySchema,
      /** Of that, what payers withdraw. */
      atRisk: moneySchema,
      lost: moneySchema,
      /** Money of buyers at the escrow: not claimed. */
      locked: moneySchema,
      unclaimedSince: z.string().nullable(),
      /** From then on a payer may take unclaimed money away. */
      nextDeadline: z.string().nullable(),
      /** Channels that cannot be claimed at the moment; `null` at a release before this one. */
      refused: z.number().nullable(),
      /** The last block whose events are known, and its age; `null` before the first one. */
      watched: z.object({ block: z.number(), at: z.string(), lagSeconds: z.number() }).nullable(),
    }),
  ),
});

/** Sums of channels. */
export type ChannelTotals = z.infer<typeof channelTotalsResult>;

/** Sums of all channels of a ledger, by network and token. */
export const channelTotalsOperation = defineOperation({
  name: "channels.totals",
  access: "read",
  argument: z.strictObject({}),
  result: channelTotalsResult,
  timeoutMs: 60_000,
  run: (reads) =>
    inSnapshot(reads, async (snapshot) => {
      const now = await readDatabaseNow(snapshot);
      const totals: ChannelTotals["totals"] = [];
      for (const { network, contract, token, channels, ...sums } of await sumChannels(snapshot)) {
        const place = { network, contract };
        const dues = await readDues(snapshot, { ...place, token });
        const watch = await readWatch(snapshot, place);
        const { unclaimed, atRisk, since, deadline } = sumClaims(dues);
        const money = (value: bigint) => toMoney(network, token, value);
        totals.push({
          ...{ network, contract, token, channels, due: dues.length },
          charged: money(sums.charged),
          unclaimed: money(unclaimed),
          atRisk: money(atRisk),
          lost: money(sums.lost),
          locked: money(sums.locked),
          unclaimedSince: toIso(since),
          nextDeadline: toIso(deadline && deadline.at * 1_000),
          refused: dues.filter(({ refusal }) => refusal !== undefined).length,
          watched:
            watch === undefined
              ? null
              : {
                  block: watch.block.number,
                  at: isoOfNode(watch.block.time * 1_000),
                  lagSeconds: Math.max(0, Math.round(now / 1_000 - watch.block.time)),
                },
        });
      }
      return { totals };
    }),
});

/** Channels of a token whose unclaimed money is in no block. */
async function readDues(
  reads: LedgerReads,
  { token, ...place }: ChannelContract & { token: Address },
): Promise<ClaimableChannel[]> {
  const all: ClaimableChannel[] = [];
  for await (const due of eachClaimable(reads, place)) {
    if (due.config.token === token && unclaimedOf(due) > 0n) all.push(due);
  }
  return all;
}
