import type { Dialect } from "@coinslot/storage";
import type { Insertable, Transaction } from "kysely";
import type { LedgerSchema, PaymentsTable } from "../schema.ts";
import type { ReserveRequest } from "./reserve-request.ts";

/** Ids of the names in the dictionary of sold things, as far as this process has used them. */
export type SoldNames = Map<string, number>;

/** Ids in memory, at most: a route with an id in its path sells very many resources. */
const maxKnown = 20_000;
/** PostgreSQL indexes no text of more than 2,700 bytes. */
const maxNameLength = 500;

/** Returns whether a reservation of these requests adds no name to the dictionary. */
export function areNamesKnown(requests: readonly ReserveRequest[], known: SoldNames): boolean {
  return requests.every((request) => namesOf(request).every((name) => known.has(name)));
}

/**
 * Ids of the names in these requests: known ones, and the others from the dictionary, where they
 * are added. Pass them to `rememberSoldNames` once the transaction is committed.
 *
 * The racers are processes that add the same name. One of the two inserts waits for the other, and
 * is ignored. All add in the order of the names, and after every other lock, so no two deadlock.
 */
export async function findSoldNames(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  requests: readonly ReserveRequest[];
  known: SoldNames;
}): Promise<SoldNames> {
  const { transaction, dialect, requests, known } = options;
  const found: SoldNames = new Map();
  const missing = new Map<string, string>();
  for (const request of requests) {
    for (const name of namesOf(request)) {
      const id = known.get(name);
      if (id === undefined) missing.set(name, storedName(name));
      else found.set(name, id);
    }
  }
  if (missing.size === 0) return found;
  const names = [...new Set(missing.values())].sort();
  await dialect.insertMany<LedgerSchema, "sold_names">(
    transaction,
    "sold_names",
    names.map((name) => ({ name })),
    "ignore",
  );
  const rows = await transaction
    .selectFrom("sold_names")
    .select(["id", "name"])
    .where("name", "in", dialect.among(names))
    .execute();
  const ids = new Map(rows.map(({ id, name }) => [name, id]));
  for (const [name, stored] of missing) {
    const id = ids.get(stored);
    if (id !== undefined) found.set(name, id);
  }
  return found;
}

/** Writes ids into the row of a payment that buys the things they name. */
export function nameSoldItem(
  row: Pick<Insertable<PaymentsTable>, "route_id" | "resource_id" | "pay_to_id">,
  { payTo, sold }: ReserveRequest,
  names: SoldNames,
): void {
  row.pay_to_id = names.get(payTo) ?? null;
  if (sold === undefined) return;
  row.route_id = names.get(sold.route) ?? null;
  row.resource_id = names.get(sold.resource) ?? null;
}

/** Keeps ids for the next requests. */
export function rememberSoldNames(known: SoldNames, found: SoldNames): void {
  if (known.size + found.size > maxKnown) known.clear();
  for (const [name, id] of found) known.set(name, id);
}

function namesOf({ payTo, sold }: ReserveRequest): string[] {
  return sold ? [payTo, sold.route, sold.resource] : [payTo];
}

/** The name as a database can hold it: short, and without half a character at its end. */
function storedName(name: string): string {
  return Buffer.from(name.slice(0, maxNameLength).replaceAll("\0", "")).toString();
}
