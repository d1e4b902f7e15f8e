import { knownAsset, plasma, plasmaUsdt0 } from "@coinslot/protocol";
import type { Express } from "express";
import { validate } from "mppx/discovery";
import supertest from "supertest";
import { expect } from "vitest";
import {
  type DiscoveredGates,
  type DiscoveryOptions,
  type PaymentMiddleware,
  type PaymentMiddlewareOptions,
  type PaymentRoutes,
  paymentMiddleware,
} from "../index.ts";
import { type ExpressModule, expressVersions } from "./express-versions.ts";
import { createPaperFacilitator } from "./paper-facilitator.ts";
import { option } from "./shop.ts";

export const base = "eip155:8453";
export const mppSecret = "a secret of thirty-two bytes and more";

/** A cent in USDC on Base, whose domain released buyers of MPP know. */
export function usdc() {
  const { address: asset, name, version, decimals } = knownAsset(base) ?? plasmaUsdt0;
  return option({
    network: base,
    price: { amount: "10000", asset, extra: { name, version, decimals } },
  });
}

export function gateOf(
  routes: PaymentRoutes,
  options: PaymentMiddlewareOptions = {},
): PaymentMiddleware {
  return paymentMiddleware(routes, createPaperFacilitator({ networks: [plasma, base] }), {
    mpp: { secrets: [mppSecret] },
    ...options,
  });
}

const [, newest] = expressVersions;

/** An application that serves the discovery of its gates. */
export function appOf(
  gates: DiscoveredGates,
  {
    options,
    express = newest?.express,
  }: { options?: DiscoveryOptions; express?: ExpressModule | undefined } = {},
): Express {
  if (express === undefined) throw new Error("No Express");
  const app = express();
  app.use(paymentMiddleware.discovery(gates, options));
  return app;
}

/** The document of one gate of these routes. */
export async function documentOf(
  routes: PaymentRoutes,
  { options, gate = {} }: { options?: DiscoveryOptions; gate?: PaymentMiddlewareOptions } = {},
) {
  const middleware = gateOf(routes, gate);
  await middleware.ready();
  const { body } = await supertest(appOf(middleware, { ...(options && { options }) }))
    .get("/openapi.json")
    .expect(200);
  expect(validate(body)).toEqual([]);
  return body;
}

export async function llmsOf(routes: PaymentRoutes, options: DiscoveryOptions = {}, gate = {}) {
  const middleware = gateOf(routes, gate);
  await middleware.ready();
  const { text } = await supertest(appOf(middleware, { options })).get("/llms.txt").expect(200);
  return text;
}
