// The process under test: a seller with its own facilitator, like an application's, with fault
// points that kill it. Ends with the runner.

import { appendFileSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { listen } from "@coinslot/devnet";
import { paymentMiddleware } from "@coinslot/express";
import { createFacilitator, type LedgerPayment } from "@coinslot/facilitator";
import { readFacilitatorArguments } from "@coinslot/protocol";
import express from "express";
import { createFaultPoints } from "./fault-points.ts";
import { createFileLogger } from "./file-logger.ts";
import { failsOnce, tokenDomain } from "./purchase.ts";
import {
  type ListedPayment,
  runnerMessageSchema,
  type WorkerMessage,
  workerOptionsSchema,
} from "./worker-messages.ts";

const options = workerOptionsSchema.parse(JSON.parse(process.argv[2] ?? ""));
const { network, payTo, token, price, validitySeconds, floatKey, webhook } = options;
const log = createFileLogger(options.logFile);
const { obey, pass } = createFaultPoints(log);

process.on("disconnect", () => process.exit());
process.on("message", (message) => {
  if (obey(runnerMessageSchema.parse(message))) return;
  listPayments().then(
    (payments) => tell({ type: "payments", payments }),
    (error: unknown) => log.error({ err: error }, "the payments could not be listed"),
  );
});

const facilitator = createFacilitator({
  networks: [{ network, rpcUrls: [options.rpcUrl], relayer: { privateKey: options.relayerKey } }],
  ledger: options.ledger,
  logger: log,
  // Shorter than in production, so that a run sees many takeovers.
  settleTimeoutSeconds: 10,
  heartbeatLeaseSeconds: 3,
  times: { leaseMs: 2_000, sweepMs: 500, resendMs: 1_000, replaceMs: 4_000, refundMs: 300 },
  refunds: floatKey === undefined ? undefined : { privateKey: floatKey },
  webhooks: webhook && [{ ...webhook, unsafeAllowPrivateAddresses: true }],
  faultPoint: pass,
}).onAfterSettle(({ paymentPayload, requirements, result }) => {
  if (result.success) return pass("settled");
  if (result.errorReason === "settlement_pending") return;
  const read = readFacilitatorArguments(paymentPayload, requirements);
  if (!read.ok) return;
  const { nonce } = read.request.paymentPayload.payload.authorization;
  tell({ type: "settlement-refused", nonce });
});
facilitator.onEvent((event) => {
  if (event.type !== "settle_reorganised") return;
  const { nonce } = event.authorization;
  tell({ type: "reorganised", nonce, wasDelivered: event.wasDelivered });
});

const accepts = {
  scheme: "exact",
  network,
  payTo,
  price: { amount: price, asset: token, extra: { ...tokenDomain, decimals: 6 } },
} as const;
const gate = paymentMiddleware(
  {
    "GET /report/:number": { accepts, maxTimeoutSeconds: validitySeconds },
    "GET /upfront/:number": { accepts, maxTimeoutSeconds: validitySeconds, paymentFlow: "upfront" },
  },
  facilitator,
  {
    mpp: { mode: true, secrets: options.challengeSecrets },
    onError: (error) => log.warn({ err: error }, "the middleware reported a fault"),
  },
);
const app = express();
app.get("/readyz", (_request, response) => {
  const obstacles = facilitator.obstacles();
  response.status(obstacles.length === 0 ? 200 : 503).json({ obstacles });
});
app.use(gate);
app.get(["/report/:number", "/upfront/:number"], async (request, response) => {
  const number = Number(request.params.number);
  const fails = failsOnce({ number }) && !hasRun(request.path);
  // The operating system has it when this returns, so it outlives the process.
  appendFileSync(options.runsFile, `${process.pid} ${request.path}\n`);
  log.info({ purchase: number }, "the handler runs");
  pass("handling");
  await sleep(number % 4 === 0 ? 30 : 0);
  if (fails) {
    response.status(500).json({ error: "the handler failed" });
    return;
  }
  response.json({ report: request.path });
});
await gate.ready();
const { url } = await listen(app);
tell({ type: "listening", port: Number(new URL(url).port) });

/** Returns whether the handler has run for a path, in any process. */
function hasRun(path: string): boolean {
  return readFileSync(options.runsFile, "utf8").includes(` ${path}\n`);
}

function tell(message: WorkerMessage): void {
  process.send?.(message);
}

async function listPayments(): Promise<ListedPayment[]> {
  const listed: LedgerPayment[] = [];
  let cursor: string | undefined;
  do {
    const page = await facilitator.payments.list({ limit: 1000, cursor });
    listed.push(...page.payments);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return listed.map(({ id, authorization, state, inclusion, reason, finalAt, deliveredAt }) => ({
    id,
    payer: authorization.payer,
    nonce: authorization.nonce,
    state,
    transactionHash: inclusion?.transactionHash,
    reason,
    isFinal: finalAt !== undefined,
    isDelivered: deliveredAt !== undefined,
  }));
}
