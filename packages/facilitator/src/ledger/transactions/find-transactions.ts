import type { Address, Hex, Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Kysely, Selectable } from "kysely";
import type { LedgerReads } from "../ledger-context.ts";
import { findOrders, type OrderedPayment } from "../queries/find-orders.ts";
import type { LedgerSchema } from "../schema.ts";
import { is } from "../states.ts";
import type { BroadcastsTable, TransactionState } from "../transactions-schema.ts";
import type { Broadcast } from "./store-transaction.ts";

/** A transaction whose nonce is not known to be used, with all its possible outcomes. */
export interface OpenTransaction {
  id: string;
  network: Network;
  relayer: Address;
  nonce: number;
  gasLimit: bigint;
  /** Unix milliseconds. */
  createdAt: number;
  /** Every signed form, oldest first. The last one was sent last. */
  broadcasts: (Broadcast & { createdAt: number })[];
  /** Its payments without an outcome. */
  payments: OrderedPayment[];
}

/** A relayer's name in the ledger. */
export interface RelayerName {
  network: Network;
  relayer: Address;
}

/** The open transactions of a relayer, by nonce. */
export async function findOpenTransactions(
  ledger: LedgerReads,
  name: RelayerName,
): Promise<OpenTransaction[]> {
  const { db, dialect } = ledger;
  const rows = await selectOpen(db, name).execute();
  if (rows.length === 0) return [];
  const ids = rows.map(({ id }) => id);
  const broadcasts = await db
    .selectFrom(
      dialect.rowsWith(
        db,
        "broadcasts",
        ids.map((transaction_id) => ({ transaction_id })),
      ),
    )
    .selectAll()
    .orderBy("created_at")
    .orderBy("max_fee_per_gas")
    .execute();
  const { network } = name;
  const carriedBy = ids.map((transaction_id) => ({ transaction_id, network }));
  const payments = await findOrders(ledger, () =>
    db.selectFrom(dialect.rowsWith(db, "payments", carriedBy)).selectAll(),
  );
  return rows.map((row) => {
    const carried = payments.filter(({ payment }) => payment.transactionId === row.id);
    return {
      id: row.id,
      network: row.network,
      relayer: row.relayer,
      nonce: row.nonce,
      gasLimit: BigInt(row.gas_limit),
      createdAt: row.created_at,
      broadcasts: broadcasts
        .filter(({ transaction_id }) => transaction_id === row.id)
        .map((broadcast) => ({
          ...toBroadcast(broadcast, dialect),
          createdAt: broadcast.created_at,
        })),
      payments: carried,
    };
  });
}

/** The rows of the open transactions of a relayer, by nonce. */
export function selectOpen(db: Kysely<LedgerSchema>, { network, relayer }: RelayerName) {
  return db
    .selectFrom("transactions")
    .selectAll()
    .where("network", "=", network)
    .where("relayer", "=", relayer)
    .where("state", "=", is("open"))
    .orderBy("nonce");
}

/** Ids of a relayer's open transactions. */
export async function findOpenIds(
  { db }: LedgerReads,
  { network, relayer }: RelayerName,
): Promise<string[]> {
  const rows = await db
    .selectFrom("transactions")
    .select("id")
    .where("network", "=", network)
    .where("relayer", "=", relayer)
    .where("state", "=", is("open"))
    .execute();
  return rows.map(({ id }) => id);
}

/** The relayers of a network with open transactions, whichever process has their keys. */
export async function findOpenRelayers({ db }: LedgerReads, network: Network): Promise<Address[]> {
  const rows = await db
    .selectFrom("transactions")
    .select("relayer")
    .distinct()
    .where("network", "=", network)
    .where("state", "=", is("open"))
    .execute();
  return rows.map(({ relayer }) => relayer);
}

/** The highest nonce of a relayer that the ledger has stored, but for transactions given up. */
export function findHighestNonce(
  ledger: LedgerReads,
  name: RelayerName,
): Promise<number | undefined> {
  return findHighest(ledger, name, ["open", "settled", "final"]);
}

/** The highest nonce of a relayer whose transaction stands in a block, by a receipt. */
export function findHighestIncluded(
  ledger: LedgerReads,
  name: RelayerName,
): Promise<number | undefined> {
  return findHighest(ledger, name, ["settled", "final"]);
}

async function findHighest(
  { db }: LedgerReads,
  { network, relayer }: RelayerName,
  states: readonly TransactionState[],
): Promise<number | undefined> {
  const row = await db
    .selectFrom("transactions")
    .select("nonce")
    .where("network", "=", network)
    .where("relayer", "=", relayer)
    .where(
      "state",
      "in",
      states.map((state) => is(state)),
    )
    .orderBy("nonce", "desc")
    .limit(1)
    .executeTakeFirst();
  return row?.nonce;
}

/** The states of a relayer's transactions with these nonces, by nonce. */
export async function findStates(
  { db }: LedgerReads,
  { network, relayer, nonces }: RelayerName & { nonces: readonly number[] },
): Promise<Map<number, TransactionState>> {
  const rows = await db
    .selectFrom("transactions")
    .select(["nonce", "state"])
    .where("network", "=", network)
    .where("relayer", "=", relayer)
    .where("nonce", "in", nonces)
    .execute();
  return new Map(rows.map(({ nonce, state }) => [nonce, state]));
}

/** The form of a relayer's transaction that was signed last, by its nonce. */
export async function findNewestForm(
  { db, dialect }: LedgerReads,
  { network, relayer, nonce }: RelayerName & { nonce: number },
): Promise<Broadcast | undefined> {
  const row = await db
    .selectFrom("broadcasts")
    .selectAll()
    .where("transaction_id", "=", (where) =>
      where
        .selectFrom("transactions")
        .select("id")
        .where("network", "=", network)
        .where("relayer", "=", relayer)
        .where("nonce", "=", nonce),
    )
    .orderBy("created_at", "desc")
    .orderBy("max_fee_per_gas", "desc")
    .limit(1)
    .executeTakeFirst();
  return row && toBroadcast(row, dialect);
}

function toBroadcast(row: Selectable<BroadcastsTable>, dialect: Dialect): Broadcast {
  const { hash, raw, content, max_fee_per_gas, max_priority_fee_per_gas } = row;
  return {
    hash,
    raw,
    content,
    maxFeePerGas: dialect.amount.decode(max_fee_per_gas),
    maxPriorityFeePerGas:
      max_priority_fee_per_gas === null
        ? undefined
        : dialect.amount.decode(max_priority_fee_per_gas),
  };
}

/** Every hash under which a payment's last transaction was signed, the newest first. */
export async function findHashes({ db }: LedgerReads, transactionId: string): Promise<Hex[]> {
  const rows = await db
    .selectFrom("broadcasts")
    .select("hash")
    .where("transaction_id", "=", transactionId)
    .orderBy("created_at", "desc")
    .orderBy("max_fee_per_gas", "desc")
    .execute();
  return rows.map(({ hash }) => hash);
}
