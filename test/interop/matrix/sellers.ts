import { type Devnet, type Listening, listen } from "@coinslot/devnet";
import { createFacilitatorClient, paymentMiddleware } from "@coinslot/express";
import { HTTPFacilitatorClient } from "@x402/core/server";
import express, { type RequestHandler } from "express";
import { paymentMiddleware as paymentMiddlewareV1 } from "x402-express";
import { startReferenceSeller } from "../../support/reference.ts";
import { priceOfWeather, weatherPrice } from "../../support/seller.ts";
import type { RunningFacilitator } from "./facilitators.ts";

/** A middleware of the matrix, and the versions of the protocol that it sells in. */
export interface MatrixSeller {
  name: string;
  versions: readonly (1 | 2)[];
  /** True if it takes a facilitator of its own process. */
  takesObject: boolean;
  /** Sells `GET /weather` for `priceOfWeather`. */
  start(devnet: Devnet, facilitator: RunningFacilitator): Promise<Listening>;
}

/** Every middleware of the matrix. */
export const sellers: readonly MatrixSeller[] = [
  {
    name: "@coinslot/express",
    versions: [1, 2],
    takesObject: true,
    async start(devnet, running) {
      const facilitator =
        "url" in running ? createFacilitatorClient({ url: running.url }) : running.inProcess;
      const accepts = weatherPrice(devnet);
      const routes = { "GET /weather": { accepts, description: "Weather" } };
      const gate = paymentMiddleware(routes, facilitator, { legacyNetworkNames: true });
      await gate.ready();
      return serve(gate);
    },
  },
  {
    name: "@x402/express 2.27",
    versions: [2],
    takesObject: true,
    start(devnet, running) {
      const facilitator =
        "url" in running ? new HTTPFacilitatorClient({ url: running.url }) : running.inProcess;
      return startReferenceSeller(devnet, facilitator);
    },
  },
  {
    name: "x402-express 1.2",
    versions: [1],
    takesObject: false,
    start(devnet, running) {
      if (!("url" in running)) throw new Error("x402-express takes the URL of a facilitator");
      const { token, accounts } = devnet;
      const asset = { address: token, decimals: 6, eip712: { name: "USDT0", version: "1" } };
      const price = { amount: priceOfWeather.toString(), asset };
      const routes = { "GET /weather": { price, network: "base-sepolia" } } as const;
      const url = new URL(running.url);
      const { protocol, host } = url;
      const resource = `${protocol === "https:" ? "https" : "http"}://${host}` as const;
      return serve(paymentMiddlewareV1(accounts.seller.address, routes, { url: resource }));
    },
  },
];

function serve(gate: RequestHandler): Promise<Listening> {
  const app = express().use(gate);
  app.get("/weather", (_request, response) => void response.json({ forecast: "sun" }));
  return listen(app);
}
