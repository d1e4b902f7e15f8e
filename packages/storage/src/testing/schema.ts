import type { StoredAmount } from "../dialect.ts";
import type { Migration } from "../migrate.ts";

/** A table to count in. */
export interface CounterSchema {
  counters: { id: number; value: number };
}

export const counterMigrations: readonly Migration[] = [
  {
    title: "counters",
    async up(tx, { types }) {
      await tx.schema
        .createTable("counters")
        .addColumn("id", types.integer, (column) => column.primaryKey())
        .addColumn("value", types.integer, (column) => column.notNull())
        .execute();
    },
  },
  {
    title: "index of values",
    async up(tx) {
      await tx.schema.createIndex("counters_value").on("counters").column("value").execute();
    },
  },
];

/** A table of amounts, and of all other types of column. */
export interface AmountSchema {
  amounts: {
    id: number;
    amount: StoredAmount;
    data: Uint8Array | null;
    note: string | null;
    at_ms: number | null;
  };
}

export const amountMigrations: readonly Migration[] = [
  {
    title: "amounts",
    async up(tx, { types }) {
      await tx.schema
        .createTable("amounts")
        .addColumn("id", types.integer, (column) => column.primaryKey())
        .addColumn("amount", types.amount, (column) => column.notNull())
        .addColumn("data", types.bytes)
        .addColumn("note", types.text)
        .addColumn("at_ms", types.timestampMs)
        .execute();
    },
  },
];
