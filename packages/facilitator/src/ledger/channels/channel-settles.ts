import type { Address } from "@coinslot/protocol";
import type { Transaction } from "kysely";
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

/** Receivers of the channels that were claimed of, while the rows of these claims are kept. */
export async function findReceivers(
  { db }: LedgerReads,
  { network, contract }: ChannelContract,
): Promise<{ receiver: Address; token: Address }[]> {
  return db
    .selectFrom("channel_claims")
    .innerJoin("channel_terms", (join) =>
      join
        .onRef("channel_terms.network", "=", "channel_claims.network")
        .onRef("channel_terms.contract", "=", "channel_claims.contract")
        .onRef("channel_terms.channel_id", "=", "channel_claims.channel_id"),
    )
    .select(["channel_terms.receiver", "channel_terms.token"])
    .distinct()
    .where("channel_claims.network", "=", network)
    .where("channel_claims.contract", "=", contract)
    .execute();
}
