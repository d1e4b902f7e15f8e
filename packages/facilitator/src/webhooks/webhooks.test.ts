import { systemClock } from "@coinslot/chain";
import { listEndpoints } from "@coinslot/storage";
import { sql } from "kysely";
import { describe, expect, it, onTestFinished } from "vitest";
import { createManualClock } from "../../../chain/src/testing/manual-clock.ts";
import { readSettlementOptions } from "../configuration/settlement-options.ts";
import { readWebhooks, type WebhookOptions } from "../configuration/webhook-options.ts";
import { createLedger } from "../ledger/create-ledger.ts";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { openLedger } from "../ledger/open-ledger.ts";
import { recordOutcomes } from "../ledger/payments/record-outcomes.ts";
import { finaliseBlocks, undoBlocks } from "../ledger/transactions/undo-blocks.ts";
import { silentLogger } from "../logger.ts";
import { createMetrics } from "../settle/metrics.ts";
import { asset, inclusion, network, order, payer, queue } from "../testing/ledger-payments.ts";
import { copyMigratedLedger } from "../testing/migrated-ledger.ts";
import { engines } from "../testing/settling-devnet.ts";
import { openWebhookReceiver, webhookSecret } from "../testing/webhook-receiver.ts";
import { startWebhooks } from "./start-webhooks.ts";
import { watchBacklog } from "./watch-backlog.ts";

/** Longest wait for a condition, on a busy machine. */
const patience = { timeout: 30_000, interval: 5 };

const open: typeof openWebhookReceiver = async (...answer) => {
  const receiver = await openWebhookReceiver(...answer);
  onTestFinished(() => receiver.close());
  return receiver;
};

const hook = (url: string, others: Partial<WebhookOptions> = {}): WebhookOptions => ({
  url,
  secret: webhookSecret,
  unsafeAllowPrivateAddresses: true,
  ...others,
});

async function confirm(ledger: LedgerContext, ids: readonly string[]): Promise<void> {
  await recordOutcomes(ledger, [{ confirmed: { ids, inclusion } }]);
}

const block = { number: inclusion.blockNumber, hash: inclusion.blockHash };

describe.each(engines)("the webhooks of a ledger on %s", (engine) => {
  async function openTestLedger(): Promise<LedgerContext> {
    const place = await copyMigratedLedger(engine);
    const { database, close } = await openLedger({ url: place.url, processId: "first" });
    onTestFinished(async () => {
      await close();
      await place.drop();
    });
    return createLedger({
      database,
      processId: "first",
      now: Date.now,
      heartbeatLeaseMs: 30_000,
      keepAnswersMs: 60_000,
      releaseLimit: { count: 20, windowMs: 60_000 },
    });
  }

  async function start(ledger: LedgerContext, options: readonly WebhookOptions[] | undefined) {
    const { webhooks, problems } = readWebhooks(options);
    expect(problems).toEqual([]);
    const metrics = createMetrics();
    const { times } = readSettlementOptions({ times: { sweepMs: 100 } });
    const parts = { ledger, metrics, times, clock: systemClock, now: Date.now };
    const running = await startWebhooks({ ...parts, logger: silentLogger }, webhooks);
    onTestFinished(() => running.stop());
    return { ...running, metrics, endpoint: webhooks?.[0]?.id ?? "" };
  }

  /** Makes failed deliveries due at once. */
  const hurry = (ledger: LedgerContext) =>
    sql`update outbox_deliveries set next_at = 0 where state = 'pending' and claim is null`.execute(
      ledger.db,
    );

  it("tell a payment's life in order, with its facts, and nothing that could be used to take it", async () => {
    const ledger = await openTestLedger();
    const receiver = await open();
    await start(ledger, [hook(`${receiver.url}/hook`)]);
    const id = await queue(ledger);
    await confirm(ledger, [id]);
    await undoBlocks(ledger, { network, blocks: [block] });
    await confirm(ledger, [id]);
    await finaliseBlocks(ledger, { network, blocks: [block] });
    await expect
      .poll(() => receiver.typesOf(id), patience)
      .toEqual(["payment.settled", "payment.reverted", "payment.settled", "payment.final"]);
    const [settled, reverted] = receiver.received;
    const data = {
      payment: id,
      network,
      asset,
      payer,
      payTo: order.payTo,
      amount: "10",
      transactionHash: inclusion.transactionHash,
      blockNumber: inclusion.blockNumber,
    };
    expect(settled).toEqual({
      id: expect.stringMatching(/^evt_\d+_[0-9a-f]{16}$/),
      type: "payment.settled",
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      data,
    });
    expect(reverted?.data).toEqual(data);
    expect(new Set(receiver.received.map((event) => event.id)).size).toBe(4);
  });

  it("tell a failure with its reason, and a delivery only if asked for", async () => {
    const ledger = await openTestLedger();
    const receiver = await open();
    const types = ["payment.failed", "payment.delivered"] as const;
    await start(ledger, [hook(receiver.url, { events: types })]);
    const [failed, delivered] = [await queue(ledger), await queue(ledger)];
    await recordOutcomes(ledger, [{ failed: [{ ids: [failed], reason: "invalid_payload" }] }]);
    await confirm(ledger, [delivered]);
    await sql`update payments set delivered_at = 1 where id = ${delivered}`.execute(ledger.db);
    await expect.poll(() => receiver.received, patience).toHaveLength(2);
    expect(receiver.typesOf(failed)).toEqual(["payment.failed"]);
    expect(receiver.received[0]?.data.reason).toBe("invalid_payload");
    expect(receiver.typesOf(delivered)).toEqual(["payment.delivered"]);
  });

  it("tell a refund as an event of its payment, and not as a payment of the float", async () => {
    const ledger = await openTestLedger();
    const receiver = await open();
    await start(ledger, [hook(receiver.url)]);
    const [id, operation] = [await queue(ledger), await queue(ledger)];
    await sql`update payments set refund_of = ${id} where id = ${operation}`.execute(ledger.db);
    await sql`
      insert into refunds (id, payment_id, n, network, asset, payer, nonce, amount, state, origin,
        created_at, next_at)
      values ('refund', ${id}, 1, ${network}, ${asset}, ${payer}, '0x01',
        ${ledger.dialect.amount.encode(7n)}, 'scheduled', 'operator', 1, 1)
    `.execute(ledger.db);
    await confirm(ledger, [operation]);
    for (const state of ["sent", "confirmed", "sent", "confirmed", "final"]) {
      await sql`update refunds set state = ${state} where id = 'refund'`.execute(ledger.db);
    }
    await expect
      .poll(() => receiver.typesOf(id), patience)
      .toEqual([
        "refund.created",
        "refund.settled",
        "refund.reverted",
        "refund.settled",
        "refund.final",
      ]);
    expect(receiver.received[0]?.data).toEqual({
      payment: id,
      refund: "refund",
      network,
      asset,
      payer,
      amount: "7",
    });
    expect(receiver.typesOf(operation)).toEqual([]);
  });

  it("go to a receiver that has moved, if it has an id, and show no path of its URL", async () => {
    const ledger = await openTestLedger();
    const before = await open((_, response) => void response.writeHead(500).end());
    const first = await start(ledger, [hook(`${before.url}/services/T0/secret`, { id: "a" })]);
    await confirm(ledger, [await queue(ledger)]);
    await expect.poll(() => before.received.length, patience).toBeGreaterThan(0);
    await first.stop();
    const after = await open();
    await start(ledger, [hook(`${after.url}/services/T1/secret`, { id: "a" })]);
    await hurry(ledger);
    await expect
      .poll(() => after.received.map(({ type }) => type), patience)
      .toEqual(["payment.settled"]);
    const endpoints = await listEndpoints(ledger);
    expect(endpoints).toMatchObject([{ id: "whk_a", url: `${after.url}/…` }]);
  });

  it("write nothing without a receiver, and nothing more without its subscription", async () => {
    const ledger = await openTestLedger();
    const receiver = await open();
    const [first, second, third] = [await queue(ledger), await queue(ledger), await queue(ledger)];
    await confirm(ledger, [first]);
    const { stop } = await start(ledger, [hook(receiver.url)]);
    await stop();
    // A process without the option decides nothing.
    await start(ledger, undefined);
    await confirm(ledger, [second]);
    await start(ledger, []);
    await confirm(ledger, [third]);
    await start(ledger, [hook(receiver.url)]);
    await expect.poll(() => receiver.received, patience).toHaveLength(1);
    expect(receiver.typesOf(second)).toEqual(["payment.settled"]);
  });

  it("try 500, a redirect and a closed connection again, with the same id, and count them", async () => {
    const ledger = await openTestLedger();
    // A connection that was kept is tried once more.
    const answers = [500, 301, 0, 0, 200];
    const receiver = await open((_, response, request) => {
      const status = answers.shift() ?? 200;
      if (status === 0) request.socket.destroy();
      else response.writeHead(status, { location: "/elsewhere" }).end();
    });
    const { metrics, endpoint } = await start(ledger, [hook(receiver.url)]);
    const id = await queue(ledger);
    await confirm(ledger, [id]);
    await finaliseBlocks(ledger, { network, blocks: [block] });
    const outcomes = async () => {
      await hurry(ledger);
      const { values } = await metrics.webhooks.get();
      return values.map(({ labels, value }) => [labels.endpoint, labels.outcome, value]);
    };
    await expect.poll(outcomes, patience).toEqual([
      [endpoint, "failed", 3],
      [endpoint, "delivered", 2],
    ]);
    const [first, ...others] = receiver.received;
    const ids = others.map((event) => event.id);
    expect(ids.slice(0, -1).every((each) => each === first?.id)).toBe(true);
    expect(receiver.received.map(({ type }) => type)).toEqual([
      ...ids.slice(0, -1).map(() => "payment.settled"),
      "payment.settled",
      "payment.final",
    ]);
  });

  it("are dead after the last attempt, and then the next event of the payment goes out", async () => {
    const ledger = await openTestLedger();
    const receiver = await open((event, response) => {
      response.writeHead(event.type === "payment.settled" ? 404 : 200).end();
    });
    const { metrics } = await start(ledger, [hook(receiver.url)]);
    const id = await queue(ledger);
    await confirm(ledger, [id]);
    await finaliseBlocks(ledger, { network, blocks: [block] });
    await expect
      .poll(async () => {
        await hurry(ledger);
        return receiver.typesOf(id).at(-1);
      }, patience)
      .toBe("payment.final");
    expect(receiver.received).toHaveLength(16);
    const text = await metrics.webhooks.get();
    expect(text.values.map(({ labels, value }) => [labels.outcome, value])).toContainEqual([
      "dead",
      1,
    ]);
  });

  it("go to each receiver in time, though another never answers and one always fails", async () => {
    const ledger = await openTestLedger();
    const silent = await open(() => undefined);
    const failing = await open((_, response) => void response.writeHead(500).end());
    const receiver = await open();
    await start(ledger, [hook(silent.url), hook(failing.url), hook(receiver.url)]);
    const ids: string[] = [];
    for (let count = 0; count < 200; count++) ids.push(await queue(ledger));
    await confirm(ledger, ids);
    await expect.poll(() => receiver.received, patience).toHaveLength(200);
    expect(new Set(receiver.received.map(({ data }) => data.payment))).toEqual(new Set(ids));
  });

  it("are shared by two processes: each event goes out once, those of a payment in order", async () => {
    const ledger = await openTestLedger();
    const receiver = await open();
    const options = [hook(receiver.url)];
    await start(ledger, options);
    await start(ledger, options);
    const ids: string[] = [];
    for (let count = 0; count < 100; count++) ids.push(await queue(ledger));
    await confirm(ledger, ids);
    await finaliseBlocks(ledger, { network, blocks: [block] });
    await expect.poll(() => receiver.received, patience).toHaveLength(200);
    for (const id of ids)
      expect(receiver.typesOf(id)).toEqual(["payment.settled", "payment.final"]);
  });

  it("stop in time while a receiver never answers, and leave the event to the next process", async () => {
    const ledger = await openTestLedger();
    let isSilent = true;
    const receiver = await open((_, response) => {
      if (!isSilent) response.end();
    });
    const { stop } = await start(ledger, [hook(receiver.url)]);
    await confirm(ledger, [await queue(ledger)]);
    await expect.poll(() => receiver.received, patience).toHaveLength(1);
    await stop();
    isSilent = false;
    await sql`update outbox_deliveries set next_at = 0`.execute(ledger.db);
    await start(ledger, [hook(receiver.url)]);
    await expect.poll(() => receiver.received, patience).toHaveLength(2);
    expect(receiver.received[1]).toEqual(receiver.received[0]);
  });

  it("are due at the start of a process whose database's clock was put back meanwhile", async () => {
    const ledger = await openTestLedger();
    let status = 500;
    const receiver = await open((_, response) => void response.writeHead(status).end());
    const { stop } = await start(ledger, [hook(receiver.url)]);
    await confirm(ledger, [await queue(ledger)]);
    await expect.poll(() => receiver.received, patience).toHaveLength(1);
    await stop();
    await sql`update outbox_deliveries set next_at = next_at + 86400000`.execute(ledger.db);
    status = 200;
    await start(ledger, [hook(receiver.url)]);
    await expect.poll(() => receiver.received, patience).toHaveLength(2);
    expect(receiver.received[1]).toEqual(receiver.received[0]);
  });

  it("show what waits in the metrics", async () => {
    const ledger = await openTestLedger();
    const receiver = await open(() => undefined);
    const { stop } = await start(ledger, [hook(receiver.url)]);
    await confirm(ledger, [await queue(ledger), await queue(ledger)]);
    await stop();
    await sql`update outbox_events set created_at = created_at - 60000`.execute(ledger.db);
    const { metrics, endpoint } = await start(ledger, [hook(receiver.url)]);
    const read = () => metrics.registry.metrics();
    await expect
      .poll(read, patience)
      .toContain(`coinslot_webhooks_pending{endpoint="${endpoint}"} 2`);
    expect(await read()).toMatch(/coinslot_webhooks_oldest_pending_seconds\{[^}]*\} [6-9]\d/);
  });

  it("show in the metrics of any process what waits for a receiver that none serves", async () => {
    const ledger = await openTestLedger();
    const receiver = await open();
    const { stop, endpoint } = await start(ledger, [hook(receiver.url)]);
    await stop();
    await confirm(ledger, [await queue(ledger)]);
    const year = 365 * 86_400_000;
    await sql`update outbox_events set created_at = created_at - ${year}`.execute(ledger.db);
    const { metrics, ...other } = await start(ledger, undefined);
    await expect
      .poll(() => metrics.registry.metrics(), patience)
      .toMatch(
        new RegExp(
          `coinslot_webhooks_oldest_pending_seconds\\{endpoint="${endpoint}"\\} 3153\\d{4}`,
        ),
      );
    await other.stop();
    // However long that was, the next process that has it in its settings delivers.
    await start(ledger, [hook(receiver.url)]);
    await expect.poll(() => receiver.received, patience).toHaveLength(1);
  });

  it("leave the metrics with their receiver", async () => {
    const ledger = await openTestLedger();
    const receiver = await open();
    const { stop, endpoint } = await start(ledger, [hook(receiver.url)]);
    await stop();
    const metrics = createMetrics();
    const clock = createManualClock();
    const watching = watchBacklog({ ledger, metrics, clock, logger: silentLogger }, []);
    onTestFinished(() => watching.stop());
    const read = () => {
      clock.advance(15_000);
      return metrics.registry.metrics();
    };
    await expect.poll(read, patience).toContain(`coinslot_webhooks_dead{endpoint="${endpoint}"} 0`);
    await start(ledger, []);
    await expect.poll(read, patience).not.toContain(endpoint);
  });
});
