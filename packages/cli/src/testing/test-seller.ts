import { type Devnet, listen } from "@coinslot/devnet";
import { paymentMiddleware } from "@coinslot/express";
import {
  type CoinslotFacilitator,
  createFacilitator,
  type WebhookOptions,
} from "@coinslot/facilitator";
import type { Address } from "@coinslot/protocol";
import express from "express";

/** A seller that settles in its own process. */
export interface TestSeller {
  url: string;
  payTo: Address;
  facilitator: CoinslotFacilitator;
  stop(): Promise<void>;
}

/**
 * Sells on a devnet: `GET /weather` and `POST /echo` for $0.001, `GET /dear` for $5. `GET /shaky`
 * is upfront, and its handler fails the first time. `GET /free` costs nothing. All by MPP, too.
 */
export async function startTestSeller(options: {
  devnet: Devnet;
  /** Of its ledger. */
  ledger: string;
  webhooks?: readonly WebhookOptions[];
}): Promise<TestSeller> {
  const { devnet, ledger, webhooks } = options;
  const { network, rpcUrl, accounts } = devnet;
  const payTo = accounts.seller.address;
  const facilitator = createFacilitator({
    networks: [{ network, rpcUrls: [rpcUrl], relayer: accounts.relayer }],
    ledger,
    webhooks,
  });
  const at = (price: `$${number}`) => ({ scheme: "exact", network, payTo, price }) as const;
  const gate = paymentMiddleware(
    {
      "GET /weather": { accepts: at("$0.001"), description: "Weather\u001b[2J, bright" },
      "POST /echo": { accepts: at("$0.001") },
      "GET /dear": { accepts: at("$5") },
      "GET /shaky": { accepts: at("$0.001"), paymentFlow: "upfront" },
    },
    facilitator,
    { mpp: true },
  );
  const app = express();
  app.use(gate);
  app.get("/weather", (_request, response) => void response.json({ forecast: "sun" }));
  app.get("/dear", (_request, response) => void response.json({ forecast: "gold" }));
  app.get("/free", (_request, response) => void response.send("nothing to pay"));
  app.post("/echo", express.raw({ type: () => true }), (request, response) => {
    response.set("x-got", request.get("content-type") ?? "").send(request.body);
  });
  let failures = 0;
  app.get("/shaky", (_request, response) => {
    failures += 1;
    if (failures === 1) response.status(500).send("it broke");
    else response.send("it holds");
  });
  await gate.ready();
  const server = await listen(app);
  return {
    url: server.url,
    payTo,
    facilitator,
    async stop() {
      await server.close();
      await facilitator.close();
    },
  };
}
