import type { Lease } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import type { ChannelStatesTable } from "../channel-chain-schema.ts";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import { type ChannelKey, keyColumns } from "./channel.ts";
import { type ChannelReading, type ChannelState, toChannelState } from "./channel-state.ts";
import { type BookedChannel, postMirror } from "./post-mirror.ts";

/** A channel's state on the chain, as one process has read it. */
export interface Mirror extends ChannelKey {
  head: ChannelReading;
  /** At the depth at which a deposit counts; `undefined` where no node returns it. */
  served: ChannelReading | undefined;
  /** At `finalAfter`; `undefined` where no node returns it. */
  final: ChannelReading | undefined;
  /** Under which the watcher writes. A request that reads a channel for the first time has none. */
  lease?: Lease | undefined;
  /** Hash of the mirror's own block, which was found to have left the chain. */
  replaces?: string | undefined;
  /** A mirror of a block further than this above the watcher's head is a false node's. */
  maxLead: number;
}

/** A channel after its mirror was written. Amounts are in the token's smallest unit. */
export interface MirroredChannel {
  charged: bigint;
  secure: bigint;
  lost: bigint;
  lostBefore: bigint;
  state: ChannelState;
}

/**
 * `stale`: the ledger has a later block's. `unknown`: the ledger has no such channel. `lease_lost`:
 * another process watches. Nothing was written.
 */
export type MirrorOutcome =
  | ({ outcome: "written" } & MirroredChannel)
  | { outcome: "stale" | "unknown" | "lease_lost" };

/**
 * Writes a channel's mirror, with it `secure` and `lost` of the channel, and posts the change to
 * the books. A lower `secure` counts at once; a higher one must stand at `served`, too. Without
 * that, it must be final.
 *
 * The racers:
 * - a charge: it locks the channel's row first. One that was earlier is in `charged`, and counts as
 *   `lost` where it exceeds the balance. A later one finds the lowered `secure`;
 * - a process with an older block, such as a request's first reading: the later block wins;
 * - a watcher that lost its lease: the guard.
 */
export function mirrorChannel(ledger: LedgerContext, mirror: Mirror): Promise<MirrorOutcome> {
  const { leases } = ledger;
  const { lease } = mirror;
  return ledger.write(async (transaction) => {
    const key = keyColumns(mirror);
    const row = await selectKey(transaction, "channels", key)
      .select(["charged", "secure", "lost"])
      .$call(ledger.dialect.forUpdate)
      .executeTakeFirst();
    if (row === undefined) return { outcome: "unknown" };
    if (lease !== undefined) {
      const held = await sql`select 1 as held where ${leases.guard(lease)}`.execute(transaction);
      if (held.rows.length === 0) return { outcome: "lease_lost" };
    }
    const known = await selectKey(transaction, "channel_states", key)
      .selectAll()
      .executeTakeFirst();
    if (known !== undefined && !mayReplace(known, mirror)) return { outcome: "stale" };
    const { encode, decode } = ledger.dialect.amount;
    const values = toRow(ledger, mirror, known);
    await transaction
      .insertInto("channel_states")
      .values({ ...key, ...values })
      .onConflict((conflict) =>
        conflict.columns(["network", "contract", "channel_id"]).doUpdateSet(values),
      )
      .execute();
    const charged = decode(row.charged);
    const secure = secureOf(mirror, decode(row.secure));
    const lost = max(0n, charged - mirror.head.balance);
    const lostBefore = decode(row.lost);
    if (secure !== decode(row.secure) || lost !== lostBefore) {
      await transaction
        .updateTable("channels")
        .set({ secure: encode(secure), lost: encode(lost) })
        .where("network", "=", key.network)
        .where("contract", "=", key.contract)
        .where("channel_id", "=", key.channel_id)
        .execute();
    }
    const state = toChannelState(
      { ...key, ...values, published: known?.published ?? null },
      ledger.dialect,
    );
    await postMirror(ledger, transaction, {
      ...mirror,
      before: bookedBefore(ledger, known, { charged, lost: lostBefore }),
      after: { ...partsOf(mirror.head), lost },
      blockNumber: mirror.head.block.number,
    });
    return { outcome: "written", charged, secure, lost, lostBefore, state };
  }, forProcess);
}

/**
 * The chain's part of a channel in the books before this mirror. Before its first one, nothing was
 * charged: `charged` is then what the chain had paid when the channel was opened.
 */
function bookedBefore(
  { dialect: { amount } }: LedgerContext,
  known: ChannelStatesTable | undefined,
  { charged, lost }: { charged: bigint; lost: bigint },
): BookedChannel {
  if (known === undefined) return { locked: 0n, claimed: charged, lost };
  const totalClaimed = amount.decode(known.claimed);
  return { ...partsOf({ balance: amount.decode(known.balance), totalClaimed }), lost };
}

function partsOf({ balance, totalClaimed }: Pick<ChannelReading, "balance" | "totalClaimed">) {
  return { locked: balance - totalClaimed, claimed: totalClaimed };
}

/**
 * The part of the balance that no payer can take back before a claim. Without `served`, it rises
 * to the final part at most.
 */
function secureOf({ head, served, final }: Mirror, before: bigint): bigint {
  if (served !== undefined) return max(secureAt(head, served), head.totalClaimed);
  const known = final === undefined ? before : max(before, secureAt(head, final));
  return max(min(secureAt(head, head), known), head.totalClaimed);
}

/** A withdrawal counts while it is seen at either depth. */
function secureAt(head: ChannelReading, deep: ChannelReading): bigint {
  const stable = min(head.balance, deep.balance);
  const leaving = max(head.withdrawal?.amount ?? 0n, deep.withdrawal?.amount ?? 0n);
  return max(0n, stable - leaving);
}

function mayReplace(known: ChannelStatesTable, mirror: Mirror): boolean {
  const { head, lease, replaces, maxLead } = mirror;
  if (known.block_hash === replaces || known.block_hash === head.block.hash) return true;
  // Else no reading would count until the chain is there.
  if (lease !== undefined && known.block_number - head.block.number > maxLead) return true;
  if (head.block.number !== known.block_number) return head.block.number > known.block_number;
  return lease !== undefined;
}

function toRow(
  { dialect }: LedgerContext,
  { head, served, final }: Mirror,
  known: ChannelStatesTable | undefined,
) {
  const { encode } = dialect.amount;
  const { withdrawal } = head;
  // A node without `final` moves nothing that was final before, as an audit of it finds.
  const fixed = final ?? (known?.is_moving === 0 ? toChannelState(known, dialect) : undefined);
  const isFinal =
    fixed !== undefined && [head, served ?? head].every((reading) => isSameState(reading, fixed));
  return {
    balance: encode(head.balance),
    claimed: encode(head.totalClaimed),
    withdraw_amount: withdrawal === undefined ? null : encode(withdrawal.amount),
    withdraw_at: withdrawal?.initiatedAt ?? null,
    refund_nonce: encode(head.refundNonce),
    block_number: head.block.number,
    block_hash: head.block.hash,
    final_balance: final === undefined ? (known?.final_balance ?? null) : encode(final.balance),
    final_claimed:
      final === undefined ? (known?.final_claimed ?? null) : encode(final.totalClaimed),
    final_number: final === undefined ? (known?.final_number ?? null) : final.block.number,
    final_hash: final === undefined ? (known?.final_hash ?? null) : final.block.hash,
    is_moving: isFinal ? 0 : 1,
  };
}

function isSameState(a: ChannelReading, b: Omit<ChannelReading, "block">): boolean {
  return (
    a.balance === b.balance &&
    a.totalClaimed === b.totalClaimed &&
    a.refundNonce === b.refundNonce &&
    a.withdrawal?.amount === b.withdrawal?.amount &&
    a.withdrawal?.initiatedAt === b.withdrawal?.initiatedAt
  );
}

function selectKey<Table extends "channels" | "channel_states">(
  transaction: Transaction<LedgerSchema>,
  table: Table,
  key: ReturnType<typeof keyColumns>,
) {
  return transaction
    .selectFrom<"channels" | "channel_states">(table as "channels")
    .where("network", "=", key.network)
    .where("contract", "=", key.contract)
    .where("channel_id", "=", key.channel_id);
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
