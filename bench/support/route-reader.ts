// A program that reads many routes, and gets requests that none of them sells. It prints its times
// as JSON. A process of its own from a bundle, as a seller's: the loader of TypeScript adds a call
// to each closure.
import { randomUUID } from "node:crypto";
import {
  type AuthorizationRoutePayment,
  paymentMiddleware,
  type RouteKey,
} from "@coinslot/express";
import { type Facilitator, plasmaUsdt0 } from "@coinslot/protocol";
import express from "express";
import { percentile } from "./measure.ts";

/** Milliseconds. */
export interface RouteTimes {
  /** Processor time of reading the routes. */
  reading: number;
  firstMiss: number;
  /** Of the later ones, p50. */
  miss: number;
}

const routeCount = Number(process.argv[2]);

const absentFacilitator: Facilitator = {
  verify: () => Promise.reject(new Error("No request is paid here")),
  settle: () => Promise.reject(new Error("No request is paid here")),
  getSupported: () => new Promise(() => undefined),
};

console.log(JSON.stringify(measure()));

function measure(): RouteTimes {
  const { address: asset, name, version, decimals } = plasmaUsdt0;
  const price = { amount: "1000", asset, extra: { name, version, decimals } };
  const payTo = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C";
  const routes: Record<RouteKey, AuthorizationRoutePayment> = {};
  for (let index = 0; index < routeCount; index += 1) {
    const accepts = {
      scheme: "exact",
      network: "eip155:9745",
      price: { ...price },
      payTo,
    } as const;
    routes[`GET /api/v1/items-${index}/:id`] = { accepts };
  }
  const before = process.cpuUsage();
  const gate = paymentMiddleware(routes, absentFacilitator, { onError() {} });
  const { user, system } = process.cpuUsage(before);
  let missMs = 0;
  const app = express();
  app.use((request, response, next) => {
    const started = performance.now();
    gate(request, response, () => {
      missMs = performance.now() - started;
      next();
    });
  });
  const misses = Array.from({ length: 301 }, (_, index) => {
    const url = `/api/v1/absent-${index}/${randomUUID()}`;
    const request = { method: "GET", url, originalUrl: url, headers: {} };
    const response = { setHeader() {}, once() {} };
    Reflect.apply(app, undefined, [request, response, () => undefined]);
    return missMs;
  });
  const [firstMiss = Number.NaN, ...later] = misses;
  return { reading: (user + system) / 1_000, firstMiss, miss: percentile(later, 0.5) };
}
