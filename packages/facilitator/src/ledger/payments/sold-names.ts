import type { Dialect } from "@coinslot/storage";
import type { Insertable, Transaction } from "kysely";
import type { LedgerSchema, PaymentsTable } from "../schema.ts";
import type { ReserveRequest } from "./reserve-request.ts";

/** A name in the dictionary of sold things. */
export interface SoldName {
  id: number;
  /** Unix milliseconds: the last time that this process wrote its use. */
  touchedAt: number;
}

/** The names in the dictionary of sold things, as far as this process has used them. */
export type SoldNames = Map<string, SoldName>;

/** A name is not forgotten before twice this time after its last use. */
export const refreshNamesMs = 12 * 3_600_000;

/** Ids in memory, at most: a route with an id in its path sells very many resources. */
const maxKnown = 20_000;
/** PostgreSQL indexes no text of more than 2,700 bytes. */
const maxNameLength = 500;

/** Returns whether a reservation of these requests writes no name into the dictionary. */
export function areNamesKnown(
  requests: readonly ReserveRequest[],
  { known, now }: { known: SoldNames; now: number },
): boolean {
  return requests.every((request) =>
    namesOf(request).every((name) => isFresh(known.get(name), now)),
  );
}

/**
 * The names in these requests: known ones, and the others from the dictionary. There they are
 * added, or their use is written. Pass them to `rememberSoldNames` once the transaction is
 * committed.
 *
 * The racers are processes that add the same name, or forget it. One of the two writes waits for
 * the other: an added name is used, a forgotten one is added again. All write in the order of the
 * names, and after every other lock, so no two deadlock.
 */
export async function findSoldNames(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  requests: readonly ReserveRequest[];
  known: SoldNames;
  /** Unix milliseconds. */
  now: number;
}): Promise<SoldNames> {
  return findNames({ ...options, names: options.requests.flatMap(namesOf) });
}

/** The same for names themselves. */
export async function findNames(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  names: readonly string[];
  known: SoldNames;
  /** Unix milliseconds. */
  now: number;
}): Promise<SoldNames> {
  const { transaction, dialect, known, now } = options;
  const found: SoldNames = new Map();
  const missing = new Map<string, string>();
  for (const name of options.names) {
    const entry = known.get(name);
    if (isFresh(entry, now)) found.set(name, entry);
    else missing.set(name, storedName(name));
  }
  if (missing.size === 0) return found;
  const names = [...new Set(missing.values())].sort();
  await dialect.insertMany<LedgerSchema, "sold_names">(
    transaction,
    "sold_names",
    names.map((name) => ({ name, used_at: now })),
    { keys: ["name"], replace: ["used_at"] },
  );
  const rows = await transaction
    .selectFrom("sold_names")
    .select(["id", "name"])
    .where("name", "in", dialect.among(names))
    .execute();
  const ids = new Map(rows.map(({ id, name }) => [name, id]));
  for (const [name, stored] of missing) {
    const id = ids.get(stored);
    if (id !== undefined) found.set(name, { id, touchedAt: now });
  }
  return found;
}

/** Writes ids into the row of a payment that buys the things they name. */
export function nameSoldItem(
  row: Pick<Insertable<PaymentsTable>, "route_id" | "resource_id" | "pay_to_id">,
  { payTo, sold }: ReserveRequest,
  names: SoldNames,
): void {
  row.pay_to_id = names.get(payTo)?.id ?? null;
  if (sold === undefined) return;
  row.route_id = names.get(sold.route)?.id ?? null;
  row.resource_id = names.get(sold.resource)?.id ?? null;
}

/** Keeps names for the next requests. */
export function rememberSoldNames(known: SoldNames, found: SoldNames): void {
  if (known.size + found.size > maxKnown) known.clear();
  for (const [name, entry] of found) known.set(name, entry);
}

/** A clock that was put back makes no name fresh for longer. */
function isFresh(entry: SoldName | undefined, now: number): entry is SoldName {
  return entry !== undefined && Math.abs(now - entry.touchedAt) < refreshNamesMs;
}

function namesOf({ payTo, sold }: ReserveRequest): string[] {
  return sold ? [payTo, sold.route, sold.resource] : [payTo];
}

/** The name as a database can hold it: short, and without half a character at its end. */
function storedName(name: string): string {
  return Buffer.from(name.slice(0, maxNameLength).replaceAll("\0", "")).toString();
}
