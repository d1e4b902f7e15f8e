import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeSync } from "node:fs";
import { effort, isWhole, seed } from "@coinslot/devnet/effort";
import { useProgram } from "@coinslot/devnet/use-program";
import fc from "fast-check";
import { sql } from "kysely";
import { describe, expect, it, onTestFinished } from "vitest";
import { readWebhooks } from "../configuration/webhook-options.ts";
import { createLedger } from "../ledger/create-ledger.ts";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { openLedger } from "../ledger/open-ledger.ts";
import { recordOutcomes } from "../ledger/payments/record-outcomes.ts";
import { finaliseBlocks, undoBlocks } from "../ledger/transactions/undo-blocks.ts";
import { silentLogger } from "../logger.ts";
import { createMetrics } from "../settle/metrics.ts";
import { hash, network, queue } from "../testing/ledger-payments.ts";
import { copyMigratedLedger } from "../testing/migrated-ledger.ts";
import { engines } from "../testing/settling-devnet.ts";
import { openWebhookReceiver, webhookSecret } from "../testing/webhook-receiver.ts";
import { startWebhooks } from "./start-webhooks.ts";

const program = useProgram(new URL("../testing/deliver-in-child.ts", import.meta.url));
const patience = { timeout: 300_000, interval: 20 };
const life = ["payment.settled", "payment.reverted", "payment.settled", "payment.final"];

const kills = 12 * effort;

/** Payments are made in batches, so that there is always something to deliver. */
const batch = isWhole ? 100 : 30;

/**
 * The next kill: at a POST of any process, after some others, the one that has run for longest. A
 * process begins with up to 64 POSTs at once: later kills come after a conclusion.
 */
const plan = fc.record({
  at: fc.constantFrom("request", "answer", "after answer"),
  // Of two batches, events are left at each kill.
  after: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 2 * batch })),
});

/**
 * Passing of the time of claims, 60 s. On SQLite the next process knows the last one dead. Rows
 * that a process locks are its own, or those of a connection that ends in a moment: waiting could
 * deadlock.
 */
async function passClaims(ledger: LedgerContext | undefined): Promise<void> {
  if (ledger === undefined) return;
  await sql`
    update outbox_deliveries set next_at = 0 where ctid in (
      select ctid from outbox_deliveries where state = 'pending' for update skip locked
    )`.execute(ledger.db);
}

describe.each(engines)("processes that deliver webhooks from a ledger on %s", (engine) => {
  it("may be killed before, during and after each POST: no event is lost, none out of order", {
    timeout: isWhole ? 86_400_000 : 240_000,
  }, async () => {
    const startedAt = performance.now();
    const place = await copyMigratedLedger(engine);
    onTestFinished(() => place.drop());
    // A file has one process.
    const processes = engine === "sqlite" ? 1 : 3;
    let onPost = (_at: "request" | "answer"): void => undefined;
    /** Ids of events, in the order of their first arrival, with their bodies. */
    const first = new Map<string, string>();
    let differing = 0;
    const receiver = await openWebhookReceiver((event, response) => {
      const body = JSON.stringify(event);
      if ((first.get(event.id) ?? body) !== body) differing += 1;
      if (!first.has(event.id)) first.set(event.id, body);
      onPost("request");
      response.on("finish", () => onPost("answer"));
      response.writeHead(204).end();
    });
    onTestFinished(() => receiver.close());
    const { url } = receiver;
    const payments: string[] = [];
    /** Keeps the ledger open where other processes may use it, too. */
    let kept: Awaited<ReturnType<typeof openWriter>> | undefined;
    const makePayments = async () => {
      const registers = payments.length === 0 ? url : undefined;
      const writer = kept ?? (await openWriter(place.url, registers));
      payments.push(...(await playLives(writer.ledger, batch)));
      if (engine === "sqlite") await writer.close();
      else kept = writer;
    };
    onTestFinished(() => kept?.close());

    const children: { process: ChildProcess; ended: Promise<unknown> }[] = [];
    onTestFinished(() => {
      for (const child of children) child.process.kill("SIGKILL");
    });
    const fill = () => {
      while (children.length < processes) {
        const task = JSON.stringify({ ledger: place.url, url, secret: webhookSecret });
        const child = spawn(process.execPath, [program(), task], { stdio: "inherit" });
        children.push({ process: child, ended: once(child, "exit") });
      }
    };
    for (const [index, { at, after }] of fc.sample(plan, { seed, numRuns: kills }).entries()) {
      if (4 * payments.length - first.size < 2 * batch) await makePayments();
      fill();
      const [oldest] = children.splice(0, 1);
      if (oldest === undefined) throw new Error("No process runs");
      let left = after;
      await new Promise<void>((resolve) => {
        onPost = (moment) => {
          if (moment !== (at === "request" ? "request" : "answer")) return;
          left -= 1;
          if (left !== 0) return;
          if (at === "after answer") setImmediate(resolve);
          else resolve();
        };
      });
      onPost = () => undefined;
      oldest.process.kill("SIGKILL");
      await oldest.ended;
      await passClaims(kept?.ledger);
      if (isWhole && index % 100 === 99) {
        const seconds = Math.round((performance.now() - startedAt) / 1000);
        writeSync(2, `${engine}: ${index + 1} kills, ${first.size} events, ${seconds} s\n`);
      }
    }
    fill();
    await expect
      .poll(
        async () => {
          await passClaims(kept?.ledger);
          return first.size;
        },
        { ...patience, interval: 1_000 },
      )
      .toBe(4 * payments.length);
    for (const child of children) child.process.kill("SIGTERM");
    for (const child of children.splice(0)) await child.ended;

    const told = new Map<string, string[]>(payments.map((id) => [id, []]));
    for (const body of first.values()) {
      const { type, data } = JSON.parse(body);
      told.get(data.payment)?.push(type);
    }
    expect([...told.values()].filter((types) => types.join() !== life.join())).toEqual([]);
    // A duplicate has the same body, and its id.
    expect(differing).toBe(0);
    if (!isWhole) return;
    const posts = receiver.received.length;
    writeSync(2, `${engine}: seed ${seed}, ${posts} POSTs of ${first.size} events, none lost\n`);
  });
});

/**
 * A process that writes payments, and delivers nothing.
 *
 * @param registers URL of a receiver to register, before there is something to deliver
 */
async function openWriter(ledgerUrl: string, registers: string | undefined) {
  const opened = await openLedger({ url: ledgerUrl, processId: "writer" });
  const ledger = createLedger({
    database: opened.database,
    processId: "writer",
    now: Date.now,
    heartbeatLeaseMs: 30_000,
    keepAnswersMs: 60_000,
    releaseLimit: { count: 20, windowMs: 60_000 },
  });
  if (registers === undefined) return { ledger, close: opened.close };
  const idle = { now: () => performance.now(), setTimer: () => () => undefined };
  const { webhooks } = readWebhooks([
    { url: registers, secret: webhookSecret, unsafeAllowPrivateAddresses: true },
  ]);
  const parts = { ledger, metrics: createMetrics(), now: Date.now, logger: silentLogger };
  const registered = await startWebhooks({ ...parts, clock: idle }, webhooks);
  await registered.stop().catch(() => undefined);
  return { ledger, close: opened.close };
}

let blocks = 0;

/** Settled, taken back, settled again and final: payments of a block of their own. */
async function playLives(ledger: LedgerContext, count: number): Promise<string[]> {
  blocks += 1;
  const block = { number: blocks, hash: hash(50_000 + blocks) };
  const inclusion = {
    transactionHash: hash(90_000 + blocks),
    blockNumber: block.number,
    blockHash: block.hash,
  };
  const ids = await Promise.all(Array.from({ length: count }, () => queue(ledger)));
  const confirm = () => recordOutcomes(ledger, [{ confirmed: { ids, inclusion } }]);
  await confirm();
  await undoBlocks(ledger, { network, blocks: [block] });
  await confirm();
  await finaliseBlocks(ledger, { network, blocks: [block] });
  return ids;
}
