import { PassThrough } from "node:stream";
import { type Listening, listen } from "@coinslot/devnet";
import type { Facilitator } from "@coinslot/protocol";
import { headerName, plasma, plasmaUsdt0 } from "@coinslot/protocol";
import type { Express, RequestHandler } from "express";
import {
  type PaymentMiddlewareOptions,
  type PaymentOption,
  type PaymentRoutes,
  paymentMiddleware,
} from "../index.ts";
import { type ExpressModule, expressVersions } from "./express-versions.ts";
import { createPaperFacilitator, type PaperFacilitator } from "./paper-facilitator.ts";

/** Recipient of the money in these tests. */
export const payTo = "0x00000000000000000000000000000000000beef1";

/** 0.001 USDT0 on Plasma by default. */
export function option(change: Partial<PaymentOption> = {}): PaymentOption {
  const { address: asset, name, version, decimals } = plasmaUsdt0;
  return {
    scheme: "exact",
    network: plasma,
    payTo,
    price: { amount: "1000", asset, extra: { name, version, decimals } },
    ...change,
  };
}

/** A seller that listens. */
export interface Shop extends Listening {
  facilitator: PaperFacilitator;
  /** The errors that the middleware reported. */
  errors: unknown[];
}

/** Starts an application: its gate first, then what `serve` adds. */
export async function openShop(config: {
  express?: ExpressModule | undefined;
  routes: PaymentRoutes;
  serve: (app: Express) => void;
  /** Middleware before the gate. */
  before?: ((app: Express) => void) | undefined;
  facilitator?: PaperFacilitator | undefined;
  options?: PaymentMiddlewareOptions | undefined;
}): Promise<Shop> {
  const { routes, serve, before, options = {} } = config;
  const express = config.express ?? expressVersions[1]?.express;
  if (express === undefined) throw new Error("No Express");
  const facilitator = config.facilitator ?? createPaperFacilitator();
  const errors: unknown[] = [];
  const app = express();
  const gate = paymentMiddleware(routes, facilitator satisfies Facilitator, {
    onError: (error) => errors.push(error),
    ...options,
  });
  before?.(app);
  app.use(gate);
  serve(app);
  await gate.ready();
  return { ...(await listen(app)), facilitator, errors };
}

/** Makes the responses of paid requests those of an adapter for functions, which never close. */
export const neverClose: RequestHandler = (request, response, next) => {
  if (request.get(headerName.paymentSignature) !== undefined) {
    const { remoteAddress } = request.socket;
    const socket = Object.assign(new PassThrough(), { remoteAddress, destroy: () => undefined });
    Object.assign(request, { socket });
    Object.assign(response, { destroy: () => response });
  }
  next();
};

/** Makes the first write of an answer to a paid request fail. */
export function failFirstWrite(): RequestHandler {
  let writes = 0;
  return (request, response, next) => {
    const end = response.end.bind(response);
    const failOnce = (...written: Parameters<typeof end>) => {
      writes += 1;
      if (writes === 1) throw new Error("not written");
      return end(...written);
    };
    if (request.get(headerName.paymentSignature) !== undefined) {
      Object.assign(response, { end: failOnce });
    }
    next();
  };
}
