import { CompiledQuery } from "kysely";
import { expect, it } from "vitest";
import { network, relayer } from "../../testing/ledger-payments.ts";
import { copyMigratedLedger } from "../../testing/migrated-ledger.ts";
import { openLedger } from "../open-ledger.ts";
import { selectOpen } from "./find-transactions.ts";

it("open transactions of a relayer are found without a scan of its history", async () => {
  const { url, drop } = await copyMigratedLedger("sqlite");
  const { database, close } = await openLedger({ url, processId: "one" });
  const { sql, parameters } = selectOpen(database.kysely, { network, relayer }).compile();
  const { rows } = await database.kysely.executeQuery<{ detail: string }>(
    CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]),
  );
  expect(rows.map(({ detail }) => detail)).toEqual([
    "SEARCH transactions USING INDEX transactions_open (network=? AND relayer=?)",
  ]);
  await close();
  await drop();
});
