import type { Address } from "@coinslot/protocol";
import { sql, type Transaction } from "kysely";
import type { LedgerContext, LedgerReads } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import { is } from "../states.ts";
import type { ChannelContract } from "./channel-state.ts";

/** A receiver of claimed money, in one token. */
export interface SettledReceiver extends ChannelContract {
  receiver: Address;
  token: Address;
}

/** Writes a settle, in the transaction that stores its own: before anything is sent. */
export async function insertSettle(
  { dialect, now }: Pick<LedgerContext, "dialect" | "now">,
  transaction: Transaction<LedgerSchema>,
  settle: SettledReceiver & { transactionId: string; amount: bigint },
): Promise<void> {
  const { network, contract, receiver, token, transactionId, amount } = settle;
  await transaction
    .insertInto("channel_settles")
    .values({
      transaction_id: transactionId,
      network,
      contract,
      receiver,
      token,
      amount: dialect.amount.encode(amount),
      created_at: now(),
    })
    .execute();
}

/** When a receiver was last settled with, and whether the transaction of that is open. */
export async function findLastSettle(
  { db }: LedgerReads,
  { network, contract, receiver, token }: SettledReceiver,
): Promise<{ createdAt: number; isOpen: boolean } | undefined> {
  const row = await db
    .selectFrom("channel_settles")
    .leftJoin("transactions", (join) =>
      join
        .onRef("transactions.id", "=", "channel_settles.transaction_id")
        .on("transactions.state", "=", is("open")),
    )
    .select(["channel_settles.created_at", "transactions.id as open_id"])
    .where("channel_settles.network", "=", network)
    .where("channel_settles.contract", "=", contract)
    .where("channel_settles.receiver", "=", receiver)
    .where("channel_settles.token", "=", token)
    .orderBy("channel_settles.created_at", "desc")
    .limit(1)
    .executeTakeFirst();
  return row && { createdAt: row.created_at, isOpen: row.open_id !== null };
}

/** One receiver and token of the terms, whatever their number of channels. */
interface ReceiverName {
  receiver: Address;
  token: Address;
  network: string;
  contract: string;
}

/**
 * Receivers of the channels that were claimed of, while the rows of these claims are kept. It goes
 * through the receivers by the index of the terms, and not through their channels: a loose index
 * scan.
 */
export async function findReceivers(
  reads: LedgerReads,
  { network, contract }: ChannelContract,
): Promise<{ receiver: Address; token: Address }[]> {
  const found: { receiver: Address; token: Address }[] = [];
  for (let name = await nextName(reads); name !== undefined; name = await nextName(reads, name)) {
    if (name.network !== network || name.contract !== contract) continue;
    const { receiver, token } = name;
    if (await isClaimed(reads, { network, contract, receiver, token })) {
      found.push({ receiver, token });
    }
  }
  return found;
}

/** The first name, or the one after another. */
async function nextName(
  { db }: LedgerReads,
  after?: ReceiverName,
): Promise<ReceiverName | undefined> {
  const { rows } = await sql<ReceiverName>`
    select receiver, token, network, contract from channel_terms
    where (receiver, token, network, contract) > (${after?.receiver ?? ""}, ${after?.token ?? ""},
      ${after?.network ?? ""}, ${after?.contract ?? ""})
    order by receiver, token, network, contract limit 1
  `.execute(db);
  return rows[0];
}

/** Whether one of the receiver's channels was claimed of: most were, so one of the first tells. */
async function isClaimed(
  { db }: LedgerReads,
  { network, contract, receiver, token }: SettledReceiver,
): Promise<boolean> {
  const row = await db
    .selectFrom("channel_terms")
    .select("channel_id")
    .where("receiver", "=", receiver)
    .where("token", "=", token)
    .where("network", "=", network)
    .where("contract", "=", contract)
    // A scalar, which is looked for row by row: PostgreSQL makes a join of all claims of an
    // `exists`.
    .where(({ selectFrom, eb }) =>
      eb(
        selectFrom("channel_claims")
          .select("channel_claims.channel_id")
          .whereRef("channel_claims.network", "=", "channel_terms.network")
          .whereRef("channel_claims.contract", "=", "channel_terms.contract")
          .whereRef("channel_claims.channel_id", "=", "channel_terms.channel_id")
          .limit(1),
        "is not",
        null,
      ),
    )
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}
