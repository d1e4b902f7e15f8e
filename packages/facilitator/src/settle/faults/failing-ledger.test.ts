import { FacilitatorError } from "@coinslot/protocol";
import { openDatabase } from "@coinslot/storage";
import { sql } from "kysely";
import { expect, it, vi } from "vitest";
import {
  holdRequests,
  idOf,
  listen,
  reserve,
  settle,
  useSettlingDevnet,
} from "../../testing/settling-actions.ts";
import type { SettlingDevnet } from "../../testing/settling-devnet.ts";

const begin = useSettlingDevnet();

/** Runs a statement on the ledger beside the facilitator. */
async function change({ ledger }: SettlingDevnet, statement: string): Promise<void> {
  const database = await openDatabase({ url: ledger.url });
  try {
    await sql.raw(statement).execute(database.kysely);
  } finally {
    await database.close();
  }
}

const soon = { heartbeatLeaseSeconds: 0.5 };

it("a ledger failure at the end of a request delays the release until the next write succeeds", async () => {
  const here = await begin();
  const facilitator = await here.start(soon);
  const paid = await here.pay();
  const reservation = await reserve(facilitator, paid);
  await change(
    here,
    "create trigger full before update on payments begin select raise(abort, 'full'); end",
  );
  await expect(facilitator.release(reservation, "outcome_unknown")).rejects.toThrow(
    FacilitatorError,
  );
  await change(here, "drop trigger full");
  const request = { id: idOf(paid), fingerprint: "GET /a" };
  await vi.waitFor(
    async () => expect(await facilitator.lookUp(request)).toEqual({ state: "free" }),
    20_000,
  );
  expect(await settle(facilitator, paid)).toMatchObject({ success: true });
});

it("a settlement succeeds while the ledger cannot record it, and is recorded later", async () => {
  const here = await begin();
  const facilitator = await here.start(soon);
  const paid = await here.pay();
  await change(
    here,
    `create trigger full before update of delivered_at on payments
     when new.delivered_at is not null begin select raise(abort, 'full'); end`,
  );
  expect(await settle(facilitator, paid)).toMatchObject({ success: true });
  await change(here, "drop trigger full");
  await vi.waitFor(async () => {
    const { payments } = await facilitator.payments.list();
    expect(payments[0]?.deliveredAt).toBeDefined();
  }, 20_000);
});

it("a payment whose settlement could not be followed to its end may be presented again", async () => {
  const here = await begin();
  const { devnet, start, pay } = here;
  const requests = holdRequests();
  const facilitator = await start({ ...requests.options, ...soon });
  const events = listen(facilitator);
  const paid = await pay();
  await devnet.setAutomine(false);
  const settled = settle(facilitator, paid);
  settled.catch(() => undefined);
  await vi.waitFor(() => expect(events).toContain("settle_started"), 20_000);
  await change(here, "alter table payments rename to payments_gone");
  requests.end();
  await expect(settled).rejects.toThrow(FacilitatorError);
  await change(here, "alter table payments_gone rename to payments");
  await devnet.setAutomine(true);
  await devnet.mine();
  await vi.waitFor(
    async () => expect(await settle(facilitator, paid)).toMatchObject({ success: true }),
    { timeout: 20_000, interval: 200 },
  );
});
