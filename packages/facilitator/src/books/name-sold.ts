import type { LedgerReads } from "../ledger/ledger-context.ts";

/** Names in memory, at most: recipients may be one per payment. */
const maxKnown = 10_000;

/** Looks up names of sold things by their ids. */
export function createNames({ db }: Pick<LedgerReads, "db">) {
  const known = new Map<number, string>();
  return {
    /** Reads those that are not known yet. */
    async learn(ids: readonly (number | null)[]): Promise<void> {
      if (known.size > maxKnown) known.clear();
      const missing = [...new Set(ids)].filter((id) => id !== null && id !== 0 && !known.has(id));
      if (missing.length === 0) return;
      const rows = await db
        .selectFrom("sold_names")
        .select(["id", "name"])
        .where(
          "id",
          "in",
          missing.filter((id) => id !== null),
        )
        .execute();
      for (const { id, name } of rows) known.set(id, name);
    },
    /** `undefined` where there is none, or it is forgotten. */
    nameOf: (id: number | null): string | undefined => (id === null ? undefined : known.get(id)),
  };
}
