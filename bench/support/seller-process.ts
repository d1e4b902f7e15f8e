// A seller in a process of its own, as the HTTP scenarios measure it. Talks to its parent by IPC:
// says its port once it listens, and its memory whenever it is asked.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { paymentMiddleware as coinslotMiddleware } from "@coinslot/express";
import { createFacilitator } from "@coinslot/facilitator";
import { type PaymentRequirements, supportedSchema } from "@coinslot/protocol";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware as referenceMiddleware, x402ResourceServer } from "@x402/express";
import express, { type RequestHandler } from "express";
import { defineChain } from "viem";
import { createReferenceFacilitator } from "./reference-facilitator.ts";

/** What the parent hands over in the environment variable `SELLER`. */
export interface SellerOptions {
  kind: "ours" | "reference" | "bare";
  rpcUrl: string;
  chainId: number;
  privateKey: `0x${string}`;
  ledger: string;
  requirements: PaymentRequirements;
}

const options: SellerOptions = JSON.parse(process.env.SELLER ?? "");
const { network, payTo, asset, amount, extra = {} } = options.requirements;

const app = express();
app.disable("x-powered-by");
const gate = await createGate();
if (gate !== undefined) app.use(gate);
app.get("/weather", (_request, response) => {
  response.json({ forecast: "sun" });
});
const server = createServer(app).listen(0, "127.0.0.1", () => {
  process.send?.({ port: (server.address() as AddressInfo).port });
});
let peak = 0;
setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss());
}, 50).unref();
process.on("message", () => process.send?.({ memory: Math.max(peak, process.memoryUsage.rss()) }));
process.on("disconnect", () => process.exit());

async function createGate(): Promise<RequestHandler | undefined> {
  switch (options.kind) {
    case "bare":
      return undefined;
    case "ours": {
      const facilitator = createFacilitator({
        networks: [
          { network, rpcUrls: [options.rpcUrl], relayer: { privateKey: options.privateKey } },
        ],
        ledger: options.ledger,
      });
      await facilitator.ready();
      const price = {
        amount,
        asset,
        extra: { name: String(extra.name), version: String(extra.version), decimals: 6 },
      };
      const accepts = [{ scheme: "exact" as const, network, payTo, price }];
      const middleware = coinslotMiddleware({ "GET /weather": { accepts } }, facilitator);
      await middleware.ready();
      return middleware;
    }
    case "reference": {
      const chain = defineChain({
        id: options.chainId,
        name: "Devnet",
        nativeCurrency: { name: "Gas", symbol: "GAS", decimals: 18 },
        rpcUrls: { default: { http: [options.rpcUrl] } },
      });
      const facilitator = createReferenceFacilitator({ ...options, chain, network });
      const resourceServer = new x402ResourceServer({
        verify: (payload, requirements) => facilitator.verify(payload, requirements),
        settle: (payload, requirements) => facilitator.settle(payload, requirements),
        getSupported: async () => supportedSchema.parse(facilitator.getSupported()),
      }).register(network, new ExactEvmScheme());
      const price = { amount, asset, extra };
      const { maxTimeoutSeconds } = options.requirements;
      const accepts = { scheme: "exact", network, payTo, price, maxTimeoutSeconds };
      return referenceMiddleware({ "GET /weather": { accepts } }, resourceServer);
    }
  }
}
