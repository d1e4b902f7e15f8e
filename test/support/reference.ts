import { type Devnet, type Listening, listen } from "@coinslot/devnet";
import { x402Client } from "@x402/core/client";
import type { FacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme as ExactEvmClient } from "@x402/evm/exact/client";
import { ExactEvmScheme as ExactEvmServer } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import { wrapFetchWithPayment } from "@x402/fetch";
import express from "express";
import type { LocalAccount } from "viem";
import { priceOfWeather } from "./seller.ts";

/** The reference implementation's client, allowed to spend any asset. */
export function createReferenceClient(devnet: Devnet, account: LocalAccount): x402Client {
  const client = new x402Client().setSpendControls(false);
  return client.register(devnet.network, new ExactEvmClient(account));
}

/** The reference implementation's fetch that pays, allowed to spend any asset. */
export function createReferenceFetch(
  devnet: Devnet,
  account: LocalAccount,
  underlying: typeof fetch = fetch,
): typeof fetch {
  return wrapFetchWithPayment(underlying, createReferenceClient(devnet, account));
}

/**
 * A seller of weather built from the released `@x402/express` alone, behind the given facilitator.
 */
export async function startReferenceSeller(
  devnet: Devnet,
  facilitator: FacilitatorClient,
): Promise<Listening> {
  const { network, token, accounts } = devnet;
  const server = new x402ResourceServer(facilitator).register(network, new ExactEvmServer());
  const price = {
    amount: priceOfWeather.toString(),
    asset: token,
    extra: { name: "USDT0", version: "1" },
  };
  const accepts = { scheme: "exact", network, payTo: accounts.seller.address, price };
  const app = express();
  app.use(paymentMiddleware({ "GET /weather": { accepts, description: "Weather" } }, server));
  app.get("/weather", (_request, response) => {
    response.json({ forecast: "sun" });
  });
  return listen(app);
}
