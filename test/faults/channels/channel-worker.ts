// The process under test: a seller by payment channels, with fault points that kill it. Ends with
// the runner.

import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { listen } from "@coinslot/devnet";
import { paymentMiddleware } from "@coinslot/express";
import { createFacilitator } from "@coinslot/facilitator";
import express from "express";
import { createFaultPoints } from "../fault-points.ts";
import { createFileLogger } from "../file-logger.ts";
import { tokenDomain } from "../purchase.ts";
import {
  runnerMessageSchema,
  type WorkerMessage,
  workerOptionsSchema,
} from "../worker-messages.ts";
import { failHeader, partOf } from "./voucher-plan.ts";

const options = workerOptionsSchema
  .required({ channels: true })
  .parse(JSON.parse(process.argv[2] ?? ""));
const { network, payTo, token, price, channels } = options;
const log = createFileLogger(options.logFile);
const { obey, pass } = createFaultPoints(log);

process.on("disconnect", () => process.exit());
process.on("message", (message) => obey(runnerMessageSchema.parse(message)));

const facilitator = createFacilitator({
  networks: [
    {
      network,
      rpcUrls: [options.rpcUrl],
      relayer: { privateKey: options.relayerKey },
      serveAfter: channels.serveAfter,
      finalAfter: channels.finalAfter,
    },
  ],
  ledger: options.ledger,
  logger: log,
  channels: {
    authorizer: { privateKey: channels.authorizerKey },
    withdrawDelaySeconds: channels.withdrawDelay,
    mostAtRisk: BigInt(channels.mostAtRisk),
    claimCost: BigInt(channels.claimCost),
    claimAfterSeconds: channels.claimAfterSeconds,
  },
  // Shorter than in production, so that a run sees many takeovers.
  heartbeatLeaseSeconds: 3,
  times: { leaseMs: 1_000, sweepMs: 500, resendMs: 1_000, replaceMs: 4_000 },
  faultPoint: pass,
});

const accepts = {
  scheme: "batch-settlement",
  network,
  payTo,
  withdrawDelay: channels.withdrawDelay,
  price: { amount: price, asset: token, extra: { ...tokenDomain, decimals: 6 } },
} as const;
const gate = paymentMiddleware(
  { "/report/:number": { accepts }, "/upfront/:number": { accepts, paymentFlow: "upfront" } },
  facilitator,
  { onError: (error) => log.warn({ err: error }, "the middleware reported a fault") },
);
const app = express();
app.use(gate);
app.all(["/report/:number", "/upfront/:number"], async (request, response) => {
  const number = Number(request.params.number);
  // The operating system has it when this returns, so it outlives the process.
  appendFileSync(options.runsFile, `${process.pid} ${request.path}\n`);
  pass("handling");
  await sleep(number % 4 === 0 ? 30 : 0);
  if (request.headers[failHeader] !== undefined) {
    response.status(500).json({ error: "the handler failed" });
    return;
  }
  const part = partOf(number, BigInt(price));
  const { payment } = request;
  if (payment?.scheme === "batch-settlement" && part < BigInt(price)) payment.charge(part);
  response.json({ report: request.path });
});
await gate.ready();
const { url } = await listen(app);
const listening: WorkerMessage = { type: "listening", port: Number(new URL(url).port) };
process.send?.(listening);
