import { withDatabase } from "@coinslot/devnet";

/** Routes of `fillLedger`, by their ids from 1 on. */
const routes = Array.from({ length: 10 }, (_, index) => `GET /reports/${index}`);

/**
 * Names what a ledger of `fillLedger` has sold: its routes, and a recipient. Payments that are not
 * archived get the broadcast of their transaction.
 */
export async function fillSoldNames(url: string, recipient: string): Promise<void> {
  await withDatabase(url, async ({ engine, execute }) => {
    const names = [...routes, recipient.toLowerCase()].map(
      (name, index) => `(${index + 1}, '${name}')`,
    );
    const recipientId = routes.length + 1;
    const fee = engine === "sqlite" ? "'01:1'" : "1";
    await execute(
      engine === "sqlite" ? "pragma synchronous = off" : "set synchronous_commit = off",
    );
    const overriding = engine === "postgres" ? "overriding system value" : "";
    await execute(`insert into sold_names (id, name) ${overriding} values ${names.join(", ")}`);
    if (engine === "postgres") {
      await execute(`select setval(pg_get_serial_sequence('sold_names', 'id'), ${recipientId})`);
    }
    await execute(`update payments set pay_to_id = ${recipientId}, wire = 'x402v2'`);
    await execute(`
      insert into broadcasts (hash, transaction_id, raw, content, max_fee_per_gas,
        max_priority_fee_per_gas, created_at)
      select transaction_hash, transaction_id, '0x02', 'payments', ${fee}, ${fee}, min(created_at)
      from payments where transaction_id is not null group by 1, 2`);
    if (engine === "postgres") await execute("vacuum analyze");
  });
}

/** Route of the ledger that `fillSoldNames` has named. */
export const knownRoute = routes[3] ?? "";
