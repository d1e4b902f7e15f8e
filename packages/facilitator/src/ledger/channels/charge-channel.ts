import type { Hex } from "@coinslot/protocol";
import { sql, type Transaction } from "kysely";
import { batchPerLedger, maxAtOnce } from "../batch-per-ledger.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { rememberSoldNames, type SoldNames } from "../payments/sold-names.ts";
import type { LedgerSchema } from "../schema.ts";
import { type ChannelKey, keyColumns } from "./channel.ts";
import { keepChannelAnswers } from "./channel-answers.ts";
import { type PostedCharge, postCharges, postingTime } from "./post-charges.ts";

/** A charge for one request. Amounts are in the token's smallest unit. */
export interface Charge extends ChannelKey {
  /** Its name, for the delivery mark and the reversal. No two charges share one. */
  id: string;
  /** `charged` of the row on which the request was admitted. */
  seen: bigint;
  /** The larger of `seen` and the chain's `totalClaimed`. */
  base: bigint;
  amount: bigint;
  /** The voucher of the request: it covers base + amount. Kept unless the amount is 0. */
  ceiling: bigint;
  signature: Hex;
  fingerprint: string;
  /** The route that it pays, for the books. */
  route?: string | undefined;
  keyHash?: string | undefined;
  /** Kept for a buyer with a key, sealed under it. */
  answer?: { sealed: Uint8Array; expiresAt: number } | undefined;
  /** Of the reserved run. A request that has reserved none charges only while none is reserved. */
  token?: string | undefined;
  /** The reserved run stays, for the next request at this process. */
  isTokenKept?: boolean | undefined;
}

/**
 * Charges a channel: one compare-and-set, on the disk before it returns. It ends the reserved run,
 * unless that is kept.
 * Charges of one moment share their statements and their flush.
 *
 * The racers:
 * - another request on the same base, here or in another process: `charged` differs by then;
 * - a withdrawal that a process has seen: `secure` is below the ceiling;
 * - a refund: `refunding` is set;
 * - a run that took the channel over from a dead process: the token differs.
 *
 * @returns false where nothing was charged: the answer must not go out
 * @throws RangeError on a charge that its own voucher does not cover
 */
export async function chargeChannel(ledger: LedgerContext, charge: Charge): Promise<boolean> {
  const { seen, base, amount, ceiling } = charge;
  if (amount < 0n || base < seen || base + amount > ceiling) {
    throw new RangeError(`No voucher over ${ceiling} covers a charge of ${amount} on ${base}`);
  }
  return chargeOne(ledger, charge);
}

const chargeOne = batchPerLedger(
  async (ledger: LedgerContext, charges: readonly Charge[]) => {
    const { outcomes, names } = await ledger.write((transaction) =>
      chargeChannels(ledger, transaction, charges),
    );
    rememberSoldNames(ledger.soldNames, names);
    return outcomes;
  },
  { maxItems: maxAtOnce },
);

const itemTypes = {
  network: "text",
  contract: "text",
  channel_id: "text",
  seen: "amount",
  charged: "amount",
  ceiling: "amount",
  signature: "text",
  id: "text",
  fingerprint: "text",
  key_hash: "text",
  amount: "amount",
  token: "text",
  kept_token: "text",
} as const;

async function chargeChannels(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  charges: readonly Charge[],
): Promise<{ outcomes: boolean[]; names: SoldNames }> {
  const { dialect } = ledger;
  const { encode } = dialect.amount;
  const nothing = encode(0n);
  const now = ledger.now();
  const items = charges.map((charge) => ({
    seen: encode(charge.seen),
    charged: encode(charge.base + charge.amount),
    ceiling: encode(charge.ceiling),
    signature: charge.signature,
    id: charge.id,
    fingerprint: charge.fingerprint,
    key_hash: charge.keyHash ?? null,
    amount: encode(charge.amount),
    token: charge.token ?? null,
    kept_token: (charge.isTokenKept && charge.token) || null,
    ...keyColumns(charge),
  }));
  const updated = await transaction
    // In one order, so that groups of two processes cannot deadlock.
    .with("locked", (db) =>
      db
        .selectFrom("channels as held")
        .innerJoin(dialect.records("item", itemTypes, items), (join) =>
          join
            .onRef("item.network", "=", "held.network")
            .onRef("item.contract", "=", "held.contract")
            .onRef("item.channel_id", "=", "held.channel_id"),
        )
        .selectAll("item")
        .orderBy("held.network")
        .orderBy("held.contract")
        .orderBy("held.channel_id")
        .$call(dialect.forUpdate),
    )
    .updateTable("channels")
    .from("locked")
    .set(({ ref }) => ({
      charged: ref("locked.charged"),
      // A voucher that charged nothing covers nothing. In a claim, all could read it, and buy with
      // it.
      ceiling: sql`case when ${ref("locked.amount")} = ${nothing} then ${ref("channels.ceiling")}
        else ${ref("locked.ceiling")} end`,
      signature: sql`case when ${ref("locked.amount")} = ${nothing} then ${ref("channels.signature")}
        else ${ref("locked.signature")} end`,
      before_ceiling: sql`case when ${ref("locked.amount")} = ${nothing}
        then ${ref("channels.before_ceiling")} else ${ref("channels.ceiling")} end`,
      before_signature: sql`case when ${ref("locked.amount")} = ${nothing}
        then ${ref("channels.before_signature")} else ${ref("channels.signature")} end`,
      running_token: ref("locked.kept_token"),
      running_owner: sql<
        string | null
      >`case when ${ref("locked.kept_token")} is not null then channels.running_owner end`,
      last_id: ref("locked.id"),
      last_fingerprint: ref("locked.fingerprint"),
      last_key_hash: ref("locked.key_hash"),
      last_amount: ref("locked.amount"),
      last_at: now,
      last_delivered_at: null,
      last_owner: ledger.processId,
      last_runs: 1,
    }))
    .whereRef("channels.network", "=", "locked.network")
    .whereRef("channels.contract", "=", "locked.contract")
    .whereRef("channels.channel_id", "=", "locked.channel_id")
    .whereRef("channels.charged", "=", "locked.seen")
    .whereRef("channels.secure", ">=", "locked.ceiling")
    .where("channels.refunding", "=", 0)
    .where(sql<boolean>`coalesce(channels.running_token, '') = coalesce(locked.token, '')`)
    .returning("channels.last_id")
    .returning(postingTime(ledger, transaction).as("posted_at"))
    .execute();
  const charged = new Set(updated.map(({ last_id }) => last_id));
  const dues = charges.filter(({ id, amount }) => charged.has(id) && amount > 0n);
  await dialect.insertMany(
    transaction,
    "channel_dues",
    dues.map((charge) => ({ since: now, ...keyColumns(charge) })),
    "ignore",
  );
  const answered = charges.flatMap(({ id, answer, ...key }) =>
    charged.has(id) && answer !== undefined ? [{ id, answer, ...key }] : [],
  );
  await keepChannelAnswers(transaction, answered);
  const names = await postCharges(ledger, transaction, {
    charges: charges.filter(({ id }) => charged.has(id)).flatMap(postedBy),
    at: Number(updated[0]?.posted_at ?? 0),
  });
  return { outcomes: charges.map(({ id }) => charged.has(id)), names };
}

/** The chain has paid more than this ledger knows of: a sale by an unknown route. */
function postedBy({ route, seen, base, amount, ...key }: Charge): PostedCharge[] {
  const charge = { route, isReversal: false, amount, ...key };
  if (base === seen) return [charge];
  return [{ route: undefined, isReversal: false, amount: base - seen, ...key }, charge];
}
