import { systemClock } from "@coinslot/chain";
import * as z from "zod";
import { readWebhooks } from "../configuration/webhook-options.ts";
import { createLedger } from "../ledger/create-ledger.ts";
import { openLedger } from "../ledger/open-ledger.ts";
import { silentLogger } from "../logger.ts";
import { createMetrics } from "../settle/metrics.ts";
import { startWebhooks } from "../webhooks/start-webhooks.ts";

const taskSchema = z.object({ ledger: z.string(), url: z.string(), secret: z.string() });

/** A program that delivers the webhooks of a ledger until it is killed. */
async function main(argument: string): Promise<void> {
  const { ledger: ledgerUrl, url, secret } = taskSchema.parse(JSON.parse(argument));
  const processId = `child ${process.pid}`;
  const { database } = await openLedger({ url: ledgerUrl, processId });
  const ledger = createLedger({
    database,
    processId,
    now: Date.now,
    heartbeatLeaseMs: 30_000,
    keepAnswersMs: 60_000,
    releaseLimit: { count: 20, windowMs: 60_000 },
  });
  const { webhooks } = readWebhooks([{ url, secret, unsafeAllowPrivateAddresses: true }]);
  const metrics = createMetrics();
  const parts = { ledger, metrics, clock: systemClock, now: Date.now, logger: silentLogger };
  await startWebhooks(parts, webhooks);
}

await main(process.argv[2] ?? "");
