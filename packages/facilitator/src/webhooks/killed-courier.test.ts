import { spawn } from "node:child_process";
import { once } from "node:events";
import { useProgram } from "@coinslot/devnet/use-program";
import { sql } from "kysely";
import { describe, expect, it, onTestFinished } from "vitest";
import { readWebhooks } from "../configuration/webhook-options.ts";
import { createLedger } from "../ledger/create-ledger.ts";
import { openLedger } from "../ledger/open-ledger.ts";
import { recordOutcomes } from "../ledger/payments/record-outcomes.ts";
import { finaliseBlocks, undoBlocks } from "../ledger/transactions/undo-blocks.ts";
import { silentLogger } from "../logger.ts";
import { createMetrics } from "../settle/metrics.ts";
import { inclusion, network, queue } from "../testing/ledger-payments.ts";
import { createTestLedger, engines } from "../testing/settling-devnet.ts";
import { openWebhookReceiver, webhookSecret } from "../testing/webhook-receiver.ts";
import { startWebhooks } from "./start-webhooks.ts";

const program = useProgram(new URL("../testing/deliver-in-child.ts", import.meta.url));
const patience = { timeout: 60_000, interval: 10 };
const payments = 60;
const life = ["payment.settled", "payment.reverted", "payment.settled", "payment.final"];

describe.each(engines)("a process that delivers webhooks from a ledger on %s", (engine) => {
  it("may be killed before, during and after each POST: no event is lost, none out of order", async () => {
    const place = await createTestLedger(engine);
    onTestFinished(() => place.drop());
    /** Called at each request; the answer follows. */
    let onRequest = (): void => undefined;
    /** Called when the answer has gone out. */
    let onAnswer = (): void => undefined;
    const receiver = await openWebhookReceiver((_, response) => {
      onRequest();
      response.on("finish", () => onAnswer());
      response.writeHead(204).end();
    });
    onTestFinished(() => receiver.close());
    const option = { url: receiver.url, secret: webhookSecret, unsafeAllowPrivateAddresses: true };

    const opened = await openLedger({ url: place.url, processId: "writer" });
    const ledger = createLedger({
      database: opened.database,
      processId: "writer",
      now: Date.now,
      heartbeatLeaseMs: 30_000,
      keepAnswersMs: 60_000,
      releaseLimit: { count: 20, windowMs: 60_000 },
    });
    // Registers the receiver, and leaves the delivery to the children.
    const idle = { now: () => performance.now(), setTimer: () => () => undefined };
    const { webhooks } = readWebhooks([option]);
    const parts = { ledger, metrics: createMetrics(), now: Date.now, logger: silentLogger };
    const registered = await startWebhooks({ ...parts, clock: idle }, webhooks);
    await registered.stop().catch(() => undefined);
    const ids: string[] = [];
    for (let count = 0; count < payments; count++) ids.push(await queue(ledger));
    const confirm = () => recordOutcomes(ledger, [{ confirmed: { ids, inclusion } }]);
    const blocks = [{ number: inclusion.blockNumber, hash: inclusion.blockHash }];
    await confirm();
    await undoBlocks(ledger, { network, blocks });
    await confirm();
    await finaliseBlocks(ledger, { network, blocks });
    if (engine === "sqlite") await opened.close();

    const task = JSON.stringify({ ledger: place.url, url: receiver.url, secret: webhookSecret });
    for (let kill = 0; kill < 12; kill++) {
      const child = spawn(process.execPath, [program(), task], { stdio: "inherit" });
      const ended = once(child, "exit");
      onTestFinished(() => void child.kill("SIGKILL"));
      // The first, second … POST of its life; before its answer, or when that has gone out.
      let left = 1 + kill * 2;
      const die = () => {
        left -= 1;
        if (left <= 0) child.kill("SIGKILL");
      };
      onRequest = kill % 2 === 0 ? die : () => undefined;
      onAnswer = kill % 2 === 1 ? die : () => undefined;
      await ended;
      // Passing of the time of its claims: 60 s. On SQLite the next process knows it dead.
      if (engine === "postgres") {
        await sql`update outbox_deliveries set next_at = 0 where state = 'pending'`.execute(
          ledger.db,
        );
      }
    }
    onRequest = () => undefined;
    onAnswer = () => undefined;
    const last = spawn(process.execPath, [program(), task], { stdio: "inherit" });
    onTestFinished(() => void last.kill("SIGKILL"));
    const firstOnes = () => {
      const seen = new Set<string>();
      return receiver.received.filter(({ id }) => !seen.has(id) && seen.add(id));
    };
    await expect.poll(() => firstOnes().length, patience).toBe(4 * payments);
    const ended = once(last, "exit");
    last.kill("SIGTERM");
    await ended;
    for (const payment of ids) {
      const types = firstOnes().flatMap(({ type, data }) => (data.payment === payment ? type : []));
      expect(types).toEqual(life);
    }
    // A duplicate has the same body, and its id.
    const bodies = new Map(receiver.received.map((event) => [event.id, event]));
    for (const event of receiver.received) expect(event).toEqual(bodies.get(event.id));
    if (engine === "postgres") await opened.close();
  });
});
