import { type Address, type Hex, toLowerHex } from "@coinslot/protocol";
import { type SqlBool, sql } from "kysely";
import { hexToBytes } from "viem";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { findRoute } from "../ledger/queries/read-newest.ts";
import { openStates } from "../ledger/schema.ts";
import { is } from "../ledger/states.ts";

/** Payments that a search text means: by their ids, or by a filter. */
export type TextMatch =
  | { kind: "payment" | "refund" | "nonce" | "transaction"; ids: readonly string[] }
  | { kind: "payer" | "token"; address: Address }
  /** By the id of its name. */
  | { kind: "recipient"; nameId: number }
  | { kind: "route"; route: string }
  /** With the routes that have the text in their names, where there are several. */
  | { kind: "none"; routes: readonly string[] };

/** Payments of one transaction or nonce, at most. A transaction carries 250. */
const maxIds = 1_000;
const maxRoutes = 20;

/**
 * Finds the meaning of a search text by its form, then by the ledger's indexes: each way reads a
 * few rows, also of ten million payments. A payer goes before a token, and a token before a
 * recipient.
 */
export async function findByText(reads: LedgerReads, text: string): Promise<TextMatch> {
  const trimmed = text.trim();
  const lower = trimmed.toLowerCase();
  if (isId(lower)) return findById(reads, lower);
  if (isHash(lower)) return findByHash(reads, lower);
  if (isAddress(lower)) return findByAddress(reads, lower);
  return findByRoute(reads, trimmed);
}

const isId = (text: string) => /^[0-9a-f]{44}$/.test(text);
const isHash = (text: string): text is Hex => /^0x[0-9a-f]{64}$/.test(text);
const isAddress = (text: string): text is Address => /^0x[0-9a-f]{40}$/.test(text);

async function findById({ db }: LedgerReads, id: string): Promise<TextMatch> {
  const refund = await db
    .selectFrom("refunds")
    .select("payment_id")
    .where("id", "=", id)
    .executeTakeFirst();
  if (refund !== undefined) return { kind: "refund", ids: [refund.payment_id] };
  for (const table of ["payments", "archived_payments"] as const) {
    const row = await db
      .selectFrom(table)
      .select(["id", "refund_of"])
      .where("id", "=", id)
      .executeTakeFirst();
    if (row?.refund_of) return { kind: "refund", ids: [row.refund_of] };
    if (row !== undefined) return { kind: "payment", ids: [row.id] };
  }
  return { kind: "none", routes: [] };
}

/** The transaction of a refund stands for the payment that it gives back. */
async function findByHash(reads: LedgerReads, hash: Hex): Promise<TextMatch> {
  const { db } = reads;
  const nonces = await db
    .selectFrom("payments")
    .select(["id", "refund_of"])
    .where("nonce", "=", hash)
    .limit(maxIds)
    .execute();
  const ofNonce = [...nonces, ...(await findArchived(reads, "nonce", hash))];
  if (ofNonce.length > 0) return { kind: "nonce", ids: idsOf(ofNonce) };
  const carried = await db
    .selectFrom("broadcasts")
    .innerJoin("payments", "payments.transaction_id", "broadcasts.transaction_id")
    .select(["payments.id", "payments.refund_of"])
    .where("broadcasts.hash", "=", hash)
    .limit(maxIds)
    .execute();
  const ofHash = [...carried, ...(await findArchived(reads, "transaction_hash", hash))];
  if (ofHash.length > 0) return { kind: "transaction", ids: idsOf(ofHash) };
  return { kind: "none", routes: [] };
}

function idsOf(rows: readonly { id: string; refund_of: string | null }[]): string[] {
  return [...new Set(rows.map(({ id, refund_of }) => refund_of ?? id))];
}

/** A statement for archived payments: SQLite's index has the first bytes alone. */
export function selectArchivedBy(
  { db, dialect }: LedgerReads,
  column: "nonce" | "transaction_hash",
  hash: Hex,
) {
  const bytes = hexToBytes(hash);
  const query = db
    .selectFrom("archived_payments")
    .select(["id", "refund_of"])
    .where(column, "=", bytes)
    .limit(maxIds);
  if (dialect.engine === "postgres") return query;
  const begins = sql<SqlBool>`substr(${sql.ref(column)}, 1, 8) = ${bytes.slice(0, 8)}`;
  return query.where(begins);
}

function findArchived(reads: LedgerReads, column: "nonce" | "transaction_hash", hash: Hex) {
  return selectArchivedBy(reads, column, hash).execute();
}

async function findByAddress(reads: LedgerReads, text: Address): Promise<TextMatch> {
  const { db } = reads;
  const address = toLowerHex(text);
  const payer = await db
    .selectFrom("payments")
    .select("id")
    .where("payer", "=", address)
    .limit(1)
    .executeTakeFirst();
  const archived = await db
    .selectFrom("archived_payments")
    .select("id")
    .where("payer", "=", hexToBytes(address))
    .limit(1)
    .executeTakeFirst();
  if (payer !== undefined || archived !== undefined) return { kind: "payer", address };
  for (const table of ["payment_sums", "payment_changes"] as const) {
    const token = await db
      .selectFrom(table)
      .select("asset")
      .where("asset", "=", address)
      .limit(1)
      .executeTakeFirst();
    if (token !== undefined) return { kind: "token", address };
  }
  const names = await db
    .selectFrom("sold_names")
    .select("id")
    .where("name", "=", address)
    .executeTakeFirst();
  if (names !== undefined) return { kind: "recipient", nameId: names.id };
  return { kind: "none", routes: [] };
}

async function findByRoute(reads: LedgerReads, text: string): Promise<TextMatch> {
  const routes = await listRoutes(reads);
  if (routes.includes(text)) return { kind: "route", route: text };
  const part = text.toLowerCase();
  const similar = routes.filter((route) => route.toLowerCase().includes(part));
  const [only] = similar;
  if (similar.length === 1 && only !== undefined) return { kind: "route", route: only };
  // Nothing of a new route has ended yet. A resource has a name in the same dictionary.
  const routeId = similar.length === 0 ? await findRoute(reads, text) : null;
  if (routeId !== null && (await hasOpen(reads, routeId))) return { kind: "route", route: text };
  return { kind: "none", routes: similar.slice(0, maxRoutes) };
}

/** By the index of each open state: open payments are few. */
async function hasOpen({ db }: LedgerReads, routeId: number): Promise<boolean> {
  for (const state of openStates) {
    const open = await db
      .selectFrom("payments")
      .select("id")
      .where("state", "=", is(state))
      .where("route_id", "=", routeId)
      .limit(1)
      .executeTakeFirst();
    if (open !== undefined) return true;
  }
  return false;
}

/** Names of the routes that ended payments have. */
async function listRoutes({ db }: LedgerReads): Promise<string[]> {
  const ids = new Set<number>();
  for (const table of ["payment_sums", "payment_changes"] as const) {
    const rows = await db.selectFrom(table).select("route_id").distinct().execute();
    for (const { route_id } of rows) ids.add(route_id);
  }
  ids.delete(0);
  if (ids.size === 0) return [];
  const rows = await db
    .selectFrom("sold_names")
    .select("name")
    .where("id", "in", [...ids])
    .orderBy("name")
    .execute();
  return rows.map(({ name }) => name);
}
