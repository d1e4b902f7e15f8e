import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@coinslot/chain";
import { startPostgres } from "@coinslot/devnet";
import type { Database } from "@coinslot/storage";
import { sql } from "kysely";
import { readWebhooks } from "../../packages/facilitator/src/configuration/webhook-options.ts";
import { createLedger } from "../../packages/facilitator/src/ledger/create-ledger.ts";
import { openLedger } from "../../packages/facilitator/src/ledger/open-ledger.ts";
import type { LedgerSchema } from "../../packages/facilitator/src/ledger/schema.ts";
import { silentLogger } from "../../packages/facilitator/src/logger.ts";
import { createMetrics } from "../../packages/facilitator/src/settle/metrics.ts";
import { startWebhooks } from "../../packages/facilitator/src/webhooks/start-webhooks.ts";
import type { Figure } from "../support/figure.ts";

const count = Number(process.env.BENCH_WEBHOOKS ?? 10_000);
/** Turns with and without triggers, and payments that one statement confirms. */
const turns = 40;
const batch = 50;
const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

/**
 * Events a second to a receiver in another process, and the cost of a change without a receiver.
 */
export async function webhooks(engine: "sqlite" | "postgres"): Promise<Figure[]> {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  const postgres = engine === "postgres" ? await startPostgres() : undefined;
  const url = (await postgres?.createDatabase())?.url ?? `sqlite:${join(folder, "ledger.db")}`;
  const { database, close } = await openLedger({ url, processId: "bench" });
  try {
    await insertPayments(database);
    return [await measureTriggers(database, engine), await measureDelivery(database, engine)];
  } finally {
    await close();
    await postgres?.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function insertPayments({ transaction, dialect }: Database<LedgerSchema>): Promise<void> {
  const rows = Array.from({ length: count }, (_, index) => ({
    id: index.toString(16).padStart(44, "0"),
    network: "eip155:9745" as const,
    asset: `0x${"aa".repeat(20)}` as const,
    payer: `0x${"bb".repeat(20)}` as const,
    nonce: `0x${index.toString(16).padStart(64, "0")}` as const,
    value: dialect.amount.encode(1_000n),
    valid_before: dialect.amount.encode(4_000_000_000n),
    state: "submitted" as const,
    fingerprint: "GET /",
    carried: 1,
    is_alone: 0,
    created_at: 1_700_000_000_000 + index,
  }));
  await transaction((tx) => dialect.insertMany(tx, "payments", rows));
}

/** A statement that confirms a batch, with the triggers of the outbox and without, in turns. */
async function measureTriggers(
  { transaction, dialect }: Database<LedgerSchema>,
  engine: string,
): Promise<Figure> {
  const ids = Array.from({ length: batch }, (_, index) => index.toString(16).padStart(44, "0"));
  const undone = new Error("undone");
  const time = async (isTold: boolean): Promise<number> => {
    let ms = 0;
    const run = transaction(async (tx) => {
      if (!isTold) await dropTriggers(engine, (statement) => sql.raw(statement).execute(tx));
      const confirm = () =>
        tx
          .updateTable("payments")
          .set({ state: "confirmed", block_number: 5, confirmed_at: 1 })
          .where("id", "in", dialect.among(ids))
          .execute();
      const undo = () =>
        tx
          .updateTable("payments")
          .set({ state: "submitted", block_number: null, confirmed_at: null })
          .where("id", "in", dialect.among(ids))
          .execute();
      await confirm();
      await undo();
      const started = performance.now();
      for (let round = 0; round < 5; round += 1) {
        await confirm();
        await undo();
      }
      ms = (performance.now() - started) / 10;
      throw undone;
    });
    await run.catch((error: unknown) => {
      if (error !== undone) throw error;
    });
    return ms;
  };
  const triggered: number[] = [];
  const silent: number[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    triggered.push(await time(true));
    silent.push(await time(false));
  }
  const [withTriggers, without] = [median(triggered), median(silent)];
  return {
    scenario: `a change of state without a receiver, ${engine}`,
    ours: { value: ((withTriggers - without) / batch) * 1_000, unit: "µs", note: "of the outbox" },
    ratio: { value: withTriggers / without, to: "the same without triggers of the outbox" },
  };
}

async function dropTriggers(
  engine: string,
  run: (statement: string) => Promise<unknown>,
): Promise<void> {
  for (const type of ["settled", "reverted", "failed", "final", "delivered"]) {
    const table = engine === "postgres" ? " on payments" : "";
    await run(`drop trigger payment_${type}_told${table}`);
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

const receiver = `
  let left = ${count};
  const server = require("node:http").createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      response.writeHead(204).end();
      left -= 1;
      if (left === 0) process.send("done");
    });
  });
  server.listen(0, "127.0.0.1", () => process.send(server.address().port));
`;

async function measureDelivery(database: Database<LedgerSchema>, engine: string): Promise<Figure> {
  const child = spawn(process.execPath, ["-e", receiver], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  try {
    const [port] = await once(child, "message");
    const done = once(child, "message");
    const url = `http://127.0.0.1:${port}/hook`;
    const { webhooks: endpoints } = readWebhooks([
      { url, secret, unsafeAllowPrivateAddresses: true },
    ]);
    const ledger = createLedger({
      database,
      processId: "bench",
      now: Date.now,
      heartbeatLeaseMs: 30_000,
      keepAnswersMs: 60_000,
      releaseLimit: { count: 20, windowMs: 60_000 },
    });
    const context = { ledger, metrics: createMetrics(), clock: systemClock, now: Date.now };
    const idle = { ...systemClock, setTimer: () => () => undefined };
    const registering = { ...context, clock: idle, logger: silentLogger };
    await (await startWebhooks(registering, endpoints)).stop();
    await sql`update payments set state = 'confirmed', confirmed_at = 1`.execute(database.kysely);
    const processor = process.cpuUsage();
    const started = performance.now();
    const running = await startWebhooks({ ...context, logger: silentLogger }, endpoints);
    await done;
    const seconds = (performance.now() - started) / 1_000;
    const { user, system } = process.cpuUsage(processor);
    await running.stop();
    const each = ((user + system) / count / 1_000).toFixed(2);
    return {
      scenario: `webhooks from one process, ${engine}`,
      ours: { value: count / seconds, unit: "/s", note: `${each} ms of processor each` },
      goal: { of: "ours", atLeast: 1_000 },
    };
  } finally {
    child.kill();
  }
}
