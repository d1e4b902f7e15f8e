import { devnetChain } from "../chains/indexer-chain.ts";
import { createIndexer } from "../create-indexer.ts";
import { finalDepth } from "./final-depth.ts";
import { webhookSecret } from "./webhook-receiver.ts";

/**
 * An indexer in a process of its own, to be killed: `node indexer-program.ts <rpc url> <database
 * url> [verifyAfterMs [webhook url]]`.
 */
const [rpcUrl = "", database = "", verifyAfterMs, webhookUrl] = process.argv.slice(2);
const indexer = createIndexer({
  chains: [
    devnetChain({
      rpcUrls: [rpcUrl],
      pollIntervalMs: 10,
      finality: { depth: finalDepth },
      maxBlocksPerRequest: 5,
      ...(verifyAfterMs !== undefined && { verifyAfterMs: Number(verifyAfterMs) }),
    }),
  ],
  database,
  leaseMs: 300,
  ...(webhookUrl !== undefined && {
    webhooks: [
      {
        id: "deposits",
        url: webhookUrl,
        secret: webhookSecret,
        unsafeAllowPrivateAddresses: true,
      },
    ],
  }),
});
await indexer.start();
process.send?.("started");
