// The process under test: a facilitator that makes the escrow's calls for a seller elsewhere, with
// fault points that kill it. Ends with the runner.

import { listen } from "@coinslot/devnet";
import { facilitatorRouter } from "@coinslot/express";
import { createFacilitator } from "@coinslot/facilitator";
import { toLowerHex } from "@coinslot/protocol";
import express from "express";
import { createFaultPoints } from "../fault-points.ts";
import { createFileLogger } from "../file-logger.ts";
import {
  runnerMessageSchema,
  type WorkerMessage,
  workerOptionsSchema,
} from "../worker-messages.ts";

const options = workerOptionsSchema
  .required({ channels: true })
  .parse(JSON.parse(process.argv[2] ?? ""));
const { network, payTo, channels } = options;
const log = createFileLogger(options.logFile);
const { obey, pass } = createFaultPoints(log);
const caller = "shop";

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
  hostedChannels: {
    callers: [{ name: caller, receivers: [toLowerHex(payTo)] }],
    authorizer: { privateKey: channels.authorizerKey },
    gasPerHour: 1_000_000_000n,
  },
  // Shorter than in production, so that a run sees many takeovers.
  heartbeatLeaseSeconds: 3,
  settleTimeoutSeconds: 10,
  times: { leaseMs: 1_000, sweepMs: 500, resendMs: 1_000, replaceMs: 4_000 },
  faultPoint: pass,
});
await facilitator.ready();
const app = express();
app.use(
  facilitatorRouter(facilitator, {
    caller: () => caller,
    onError: (err) => log.warn({ err }, "the facilitator reported a fault"),
  }),
);
const { url } = await listen(app);
const listening: WorkerMessage = { type: "listening", port: Number(new URL(url).port) };
process.send?.(listening);
