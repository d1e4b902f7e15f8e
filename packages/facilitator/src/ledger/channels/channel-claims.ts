import type { Hex, Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import { forProcess, type LedgerContext, type LedgerReads } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import { type ChannelKey, keyColumns } from "./channel.ts";
import { forgetRefusals } from "./claim-refusals.ts";

/** A row of a claim. Amounts are in the token's smallest unit. */
export interface ChannelClaim extends ChannelKey {
  /** The sum up to which it claims. */
  totalClaimed: bigint;
  /** The voucher that covers it. */
  ceiling: bigint;
  signature: Hex;
}

/** A claim whose end is not known, with the standing of its transaction. */
export interface SentClaim extends ChannelClaim {
  transactionId: string;
  /** It goes before a refund, in the refund's transaction. */
  isRefund: boolean;
  transaction: TransactionStanding;
}

/**
 * `open`: a block may still have it. `included`: it stands in a block, with this number. `gone`: no
 * block will have it any more.
 */
export type TransactionStanding =
  | { state: "open" | "gone" }
  | { state: "included"; blockNumber: number };

/** Charges were lowered since the claim was planned: nothing of it is stored. */
export class ClaimOvertakenError extends Error {
  override readonly name = "ClaimOvertakenError";
  /** Channels of which it asks for more than was charged. */
  readonly channelIds: readonly Hex[];

  constructor(channelIds: readonly Hex[]) {
    super("A claim asks for more than was charged");
    this.channelIds = channelIds;
  }
}

/** As in the index's own condition. SQLite uses it for no parameter. */
const sent = sql.lit("sent" as const);

/**
 * Writes the rows of a claim, in the transaction that stores its own: before anything is sent.
 * Their channels are read with each block from then on, and their refusals are over.
 *
 * The racer is an update that lowers a charge. Both lock the channel's row: the later one finds the
 * claim or the lowered charge, and is refused. So no claim asks for more than stays charged.
 *
 * @throws ClaimOvertakenError where a channel was charged less: nothing is stored then
 */
export async function insertClaims(
  { dialect, now }: Pick<LedgerContext, "dialect" | "now">,
  transaction: Transaction<LedgerSchema>,
  { transactionId, claims }: { transactionId: string; claims: readonly ChannelClaim[] },
): Promise<void> {
  const { encode } = dialect.amount;
  const createdAt = now();
  const overtaken = await findOvertaken(dialect, transaction, claims);
  if (overtaken.length > 0) throw new ClaimOvertakenError(overtaken);
  await dialect.insertMany(
    transaction,
    "channel_claims",
    claims.map((claim) => ({
      ...keyColumns(claim),
      transaction_id: transactionId,
      total_claimed: encode(claim.totalClaimed),
      ceiling: encode(claim.ceiling),
      signature: claim.signature,
      state: "sent" as const,
      created_at: createdAt,
    })),
  );
  const [first] = claims;
  if (first === undefined) return;
  await transaction
    .updateTable("channel_states")
    .set({ is_moving: 1 })
    .where("network", "=", first.network)
    .where("contract", "=", first.contract)
    .where("channel_id", "in", dialect.among(claims.map(({ channelId }) => channelId)))
    .execute();
  await forgetRefusals(dialect, transaction, claims);
  for (const claim of claims) {
    if (claim.ceiling > claim.totalClaimed) await notePublished(dialect, transaction, claim);
  }
}

/** Locks the channels of a claim, in the order of charges. Returns those that are charged less. */
async function findOvertaken(
  dialect: Dialect,
  transaction: Transaction<LedgerSchema>,
  claims: readonly ChannelClaim[],
): Promise<Hex[]> {
  const [first] = claims;
  if (first === undefined) return [];
  const rows = await transaction
    .selectFrom("channels")
    .select(["channel_id", "charged"])
    .where("network", "=", first.network)
    .where("contract", "=", first.contract)
    .where("channel_id", "in", dialect.among(claims.map(({ channelId }) => channelId)))
    .orderBy("channel_id")
    .$call(dialect.forUpdate)
    .execute();
  const charged = new Map(rows.map((row) => [row.channel_id, dialect.amount.decode(row.charged)]));
  return claims.flatMap(({ channelId, totalClaimed }) =>
    totalClaimed > (charged.get(channelId) ?? totalClaimed) ? [channelId] : [],
  );
}

/** The calldata of a claim is public, and with it a voucher that covers more than is claimed. */
async function notePublished(
  { amount: { encode } }: Dialect,
  transaction: Transaction<LedgerSchema>,
  { network, contract, channelId, ceiling }: ChannelClaim,
): Promise<void> {
  await transaction
    .updateTable("channel_states")
    .set({ published: encode(ceiling) })
    .where("network", "=", network)
    .where("contract", "=", contract)
    .where("channel_id", "=", channelId)
    .where(({ or, eb }) => or([eb("published", "is", null), eb("published", "<", encode(ceiling))]))
    .execute();
}

/**
 * Whether a claim has shown this voucher to all. Another signature of the same ceiling is its
 * signer's alone: without the key, the escrow's rules leave one form of a signature.
 */
export async function isPublished(
  { db, dialect }: LedgerReads,
  options: ChannelKey & { ceiling: bigint; signature: Hex },
): Promise<boolean> {
  const { network, contract, channelId, ceiling, signature } = options;
  const row = await db
    .selectFrom("channel_claims")
    .select("transaction_id")
    .where("network", "=", network)
    .where("contract", "=", contract)
    .where("channel_id", "=", channelId)
    .where("ceiling", "=", dialect.amount.encode(ceiling))
    .where("signature", "=", signature)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** The claims of a network whose end is not known. */
export async function findSentClaims(
  { db, dialect }: LedgerReads,
  network: Network,
): Promise<SentClaim[]> {
  const rows = await db
    .selectFrom("channel_claims")
    .leftJoin("transactions", "transactions.id", "channel_claims.transaction_id")
    .selectAll("channel_claims")
    .select(["transactions.state as transaction_state", "transactions.block_number"])
    .select(({ selectFrom, exists }) =>
      exists(
        selectFrom("broadcasts")
          .select("broadcasts.hash")
          .whereRef("broadcasts.transaction_id", "=", "channel_claims.transaction_id")
          .where("broadcasts.content", "=", "filler"),
      ).as("is_given_up"),
    )
    // A refund claims its own channel, by whose index it is found.
    .leftJoin("channel_refunds", (join) =>
      join
        .onRef("channel_refunds.network", "=", "channel_claims.network")
        .onRef("channel_refunds.contract", "=", "channel_claims.contract")
        .onRef("channel_refunds.channel_id", "=", "channel_claims.channel_id")
        .onRef("channel_refunds.transaction_id", "=", "channel_claims.transaction_id"),
    )
    .select("channel_refunds.id as refund_id")
    .where("channel_claims.network", "=", network)
    .where("channel_claims.state", "=", sent)
    .execute();
  const { decode } = dialect.amount;
  return rows.map((row) => ({
    network: row.network,
    contract: row.contract,
    channelId: row.channel_id,
    transactionId: row.transaction_id,
    isRefund: row.refund_id !== null,
    totalClaimed: decode(row.total_claimed),
    ceiling: decode(row.ceiling),
    signature: row.signature,
    transaction: standingOf(row),
  }));
}

/** The standing of a transaction of ours, by its row; without one, it is gone. */
export function standingOf(row: {
  transaction_state: string | null;
  block_number: number | null;
  is_given_up: unknown;
}): TransactionStanding {
  const { transaction_state: state, block_number: blockNumber } = row;
  if (state === "open") return { state: row.is_given_up ? "gone" : "open" };
  const isIncluded = state === "settled" || state === "final";
  return isIncluded && blockNumber !== null
    ? { state: "included", blockNumber }
    : { state: "gone" };
}

/** Ends claims: the chain has paid them finally, or their transaction has ended without them. */
export async function concludeClaims(
  ledger: LedgerContext,
  claims: readonly (ChannelKey & { transactionId: string; isDone: boolean })[],
): Promise<void> {
  if (claims.length === 0) return;
  await ledger.write(async (transaction) => {
    for (const claim of claims) {
      await transaction
        .updateTable("channel_claims")
        .set({ state: claim.isDone ? "done" : "failed" })
        .where("network", "=", claim.network)
        .where("contract", "=", claim.contract)
        .where("channel_id", "=", claim.channelId)
        .where("transaction_id", "=", claim.transactionId)
        .where("state", "=", sent)
        .execute();
    }
  }, forProcess);
}

/**
 * Deletes claims that have ended before a time. Those whose voucher covers more than the chain has
 * paid stay: it must buy nothing, however old it is.
 */
export async function forgetClaims(
  ledger: LedgerContext,
  { network, before }: { network: Network; before: number },
): Promise<void> {
  await ledger.write(
    (transaction) =>
      transaction
        .deleteFrom("channel_claims")
        .where("network", "=", network)
        .where("state", "!=", "sent")
        .where("created_at", "<", before)
        .where(({ or, eb, ref, exists, selectFrom }) =>
          or([
            eb("ceiling", "<=", ref("total_claimed")),
            exists(
              selectFrom("channel_states as state")
                .select("state.channel_id")
                .whereRef("state.network", "=", "channel_claims.network")
                .whereRef("state.contract", "=", "channel_claims.contract")
                .whereRef("state.channel_id", "=", "channel_claims.channel_id")
                .whereRef("state.claimed", ">=", "channel_claims.ceiling"),
            ),
          ]),
        )
        .execute(),
    forProcess,
  );
}
