import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { order, wish } from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { releasePayment } from "../payments/release-payment.ts";
import { reservePayment } from "../payments/reserve-payments.ts";
import { retentionSteps } from "./retention-steps.ts";

const hour = 3_600_000;
const day = 24 * hour;
const route = "GET /weather/:city";
const sold = (resource: string) => ({ route, resource, wire: "x402v2" }) as const;

describe.each(engines)("forgetting the names of sold items, on %s", (engine) => {
  const { join, read, wait } = ledgerForEachTest(engine, {
    releaseLimit: { count: 1_000, windowMs: 1_000 },
  });

  const names = async () =>
    ((await read(sql`select name from sold_names order by name`)) as { name: string }[]).map(
      ({ name }) => name,
    );
  const all = (...resources: string[]) => [order.payTo, route, ...resources].sort();

  /** A payment that was given up, and is forgotten a day later. */
  async function sell(ledger: LedgerContext, resource: string): Promise<void> {
    const wanted = wish({ sold: sold(resource), validBefore: 1n });
    const reserved = await reservePayment(ledger, wanted);
    if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
    const { payer } = wanted.id;
    await releasePayment(ledger, { token: reserved.token, payer, countsAgainstPayer: false });
  }

  async function retire(ledger: LedgerContext): Promise<void> {
    const times = { keepSignaturesMs: day, keepPaymentsMs: day, keepUndeliveredMs: undefined };
    for (const step of retentionSteps(ledger, times)) while ((await step()) === "again");
  }

  it("waits a day longer than for their last payment, and keeps routes, which have sums", async () => {
    const ledger = await join("one");
    await sell(ledger, "/oslo");
    wait(2 * day);
    await retire(ledger);
    expect(await read(sql`select id from archived_payments`)).toEqual([]);
    expect(await names()).toEqual(all("/oslo"));
    wait(1);
    await retire(ledger);
    expect(await names()).toEqual([route]);
  });

  it("keeps a name that is still sold, and its id", async () => {
    const ledger = await join("one");
    await sell(ledger, "/oslo");
    const before = await read(sql`select id from sold_names order by name`);
    for (let hours = 0; hours < 120; hours += 6) {
      wait(6 * hour);
      await sell(ledger, "/oslo");
      await retire(ledger);
    }
    expect(await names()).toEqual(all("/oslo"));
    expect(await read(sql`select id from sold_names order by name`)).toEqual(before);
  });

  it("keeps the names of payments that retention keeps", async () => {
    const ledger = await join("one");
    await reservePayment(ledger, wish({ sold: sold("/kept") }));
    await sell(ledger, "/gone");
    wait(5 * day);
    await retire(ledger);
    expect(await names()).toEqual(all("/kept"));
  });

  it("adds a forgotten name again for a process that has it in its memory", async () => {
    const [one, two] = [await join("one"), await join("two")];
    await sell(one, "/oslo");
    wait(5 * day);
    await retire(two);
    expect(await names()).toEqual([route]);
    await sell(one, "/oslo");
    expect(await names()).toEqual(all("/oslo"));
    expect(
      await read(sql`
        select route.name as route, resource.name as resource from payments
        join sold_names route on route.id = route_id
        join sold_names resource on resource.id = resource_id
      `),
    ).toEqual([{ route, resource: "/oslo" }]);
  });

  it("leaves every payment its names while other processes sell the same things", async () => {
    const [one, two, three] = [await join("one"), await join("two"), await join("three")];
    const resources = ["/a", "/b", "/c", "/d"];
    for (let round = 0; round < 8; round += 1) {
      for (const resource of resources) await sell(one, resource);
      wait(5 * day);
      await Promise.all([
        retire(three),
        retire(one),
        ...resources.map((resource) => sell(one, resource)),
        ...[...resources].reverse().map((resource) => sell(two, resource)),
      ]);
      const unnamed = sql`
        select id from payments
        where not exists (select 1 from sold_names where id = route_id)
          or not exists (select 1 from sold_names where id = resource_id)
          or not exists (select 1 from sold_names where id = pay_to_id)`;
      expect(await read(unnamed)).toEqual([]);
    }
  });

  it("counts the name of an earlier program as used when it is first seen", async () => {
    const ledger = await join("one");
    await sell(ledger, "/oslo");
    await read(sql`update sold_names set used_at = null`);
    wait(5 * day);
    await retire(ledger);
    expect(await names()).toEqual(all("/oslo"));
    wait(2 * day + 1);
    await retire(ledger);
    expect(await names()).toEqual([route]);
  });
});
