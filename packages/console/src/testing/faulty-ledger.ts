import { operatorAt } from "@coinslot/facilitator";
import { ledgerMigrations } from "../../../facilitator/src/ledger/migrations/ledger-migrations.ts";
import { type MigrateOptions, migrate } from "../../../storage/src/migrate.ts";
import { openForTest } from "../../../storage/src/testing/engines.ts";
import { startTestConsole } from "./signed-in.ts";

const { migrations } = ledgerMigrations;

/** Schemas of a ledger, by its age beside this release. */
export const schemas = {
  older: migrations.slice(0, -1),
  same: migrations,
  newer: [...migrations, { title: "of a later release", up: async () => undefined }],
} satisfies Record<string, MigrateOptions["migrations"]>;

/** A console beside a ledger of some schema, without a seller. */
export async function openFaultyLedger(url: string, schema: keyof typeof schemas) {
  const database = await openForTest({ url });
  await migrate(database, { ...ledgerMigrations, migrations: schemas[schema] });
  const started = await startTestConsole(operatorAt(url), { onError: () => undefined });
  return {
    ...{ database, url: started.url, link: started.link },
    /** As the seller of this release does. */
    bringUpToDate: () => migrate(database, ledgerMigrations),
  };
}
