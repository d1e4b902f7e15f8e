import { unclaimedOf } from "../../channels/claims/sum-claims.ts";
import { moneyAtRisk } from "../../channels/money-at-risk.ts";
import type { ChannelContract } from "../../ledger/channels/channel-state.ts";
import { countRefusals } from "../../ledger/channels/claim-refusals.ts";
import { eachClaimable } from "../../ledger/channels/claimable.ts";
import type { LedgerReads } from "../../ledger/ledger-context.ts";
import { attention } from "./find-attention.ts";
import type { Attention } from "./today-result.ts";

/** Channels with unclaimed money that are looked through, of each escrow. */
const maxExamined = 5_000;
/** As the alerts: a claim should be in a block by then. */
const nearShare = 0.34;
const unwatchedSeconds = 600;

/** Channels whose money needs a person: by their deadlines, their watcher, and refused claims. */
export async function findInChannels(reads: LedgerReads, now: number): Promise<Attention[]> {
  const watches = await reads.db
    .selectFrom("channel_watches")
    .select(["network", "contract", "block_time"])
    .execute();
  const found: Attention[] = [];
  for (const { block_time, ...place } of watches) {
    const { near, due } = await findDeadlines(reads, place, now / 1_000);
    const { network } = place;
    const at = near[0];
    if (at !== undefined) {
      const detail = `until ${new Date(at * 1_000).toISOString()}`;
      found.push(attention("channels_deadline", { network, count: near.length, detail }));
    }
    // Without unclaimed money it is read seldom.
    if (due > 0 && now / 1_000 - block_time > unwatchedSeconds) {
      const since = new Date(block_time * 1_000).toISOString();
      found.push(attention("channels_unwatched", { network, count: due, since }));
    }
  }
  for (const refused of await countRefusals(reads)) {
    found.push(attention("channels_refused", refused));
  }
  return found;
}

/**
 * Deadlines of withdrawals that take unclaimed money soon, the nearest first; and all that is due.
 */
async function findDeadlines(
  reads: LedgerReads,
  place: ChannelContract,
  time: number,
): Promise<{ near: number[]; due: number }> {
  const near: number[] = [];
  let due = 0;
  let examined = 0;
  for await (const each of eachClaimable(reads, place)) {
    const { channel, config, state } = each;
    examined += 1;
    if (examined > maxExamined) break;
    if (unclaimedOf(each) === 0n) continue;
    due += 1;
    if (state?.withdrawal === undefined || moneyAtRisk(channel, state) === 0n) continue;
    const deadline = state.withdrawal.initiatedAt + config.withdrawDelay;
    if (deadline - time < config.withdrawDelay * nearShare) near.push(deadline);
  }
  return { near: near.sort((one, other) => one - other), due };
}
