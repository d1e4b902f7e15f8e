import type { ChannelConfig, Hex } from "@coinslot/protocol";
import type { LedgerReads } from "../ledger-context.ts";
import { type Channel, toChannel, toChannelConfig } from "./channel.ts";
import { type ChannelContract, type ChannelState, toChannelState } from "./channel-state.ts";
import { type ClaimRefusal, toRefusal } from "./claim-refusals.ts";

/** A channel with unclaimed money, with all that a claim of it needs. */
export interface ClaimableChannel {
  channel: Channel;
  config: ChannelConfig;
  /** `undefined`: its state was never read. */
  state: ChannelState | undefined;
  /** The first charge after the last claim. */
  since: number;
  /** `undefined`: its last trial passed, or there was none since its last claim. */
  refusal: ClaimRefusal | undefined;
}

const page = 500;

/**
 * All channels with unclaimed money, by their ids. They are read page by page, as they are taken.
 */
export async function* eachClaimable(
  reads: LedgerReads,
  place: ChannelContract,
): AsyncGenerator<ClaimableChannel, void, void> {
  for (let after: Hex | undefined; ; ) {
    const found = await findClaimable(reads, { ...place, after, limit: page });
    yield* found;
    if (found.length < page) return;
    after = found.at(-1)?.channel.channelId;
  }
}

/**
 * Channels with unclaimed money, by their ids, page by page. Their number decides the time, not
 * that of idle channels.
 */
export async function findClaimable(
  { db, dialect }: LedgerReads,
  options: ChannelContract & { after?: Hex | undefined; limit: number },
): Promise<ClaimableChannel[]> {
  const { network, contract, after = "0x", limit } = options;
  const dues = await db
    .selectFrom("channel_dues")
    .selectAll()
    .where("network", "=", network)
    .where("contract", "=", contract)
    .where("channel_id", ">", after)
    .orderBy("channel_id")
    .limit(limit)
    .execute();
  if (dues.length === 0) return [];
  const ids = dialect.among(dues.map(({ channel_id }) => channel_id));
  const [channels, terms, states] = await Promise.all([
    db
      .selectFrom("channels")
      .selectAll()
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("channel_id", "in", ids)
      .execute(),
    db
      .selectFrom("channel_terms")
      .selectAll()
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("channel_id", "in", ids)
      .execute(),
    db
      .selectFrom("channel_states")
      .selectAll()
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("channel_id", "in", ids)
      .execute(),
  ]);
  const channelOf = new Map(channels.map((row) => [row.channel_id, row]));
  const termsOf = new Map(terms.map((row) => [row.channel_id, row]));
  const stateOf = new Map(states.map((row) => [row.channel_id, row]));
  return dues.flatMap(({ channel_id, since, ...due }) => {
    const channel = channelOf.get(channel_id);
    const term = termsOf.get(channel_id);
    const state = stateOf.get(channel_id);
    if (channel === undefined || term === undefined) return [];
    return {
      channel: toChannel(channel, dialect),
      config: toChannelConfig(term),
      state: state && toChannelState(state, dialect),
      since,
      refusal: toRefusal(due),
    };
  });
}
