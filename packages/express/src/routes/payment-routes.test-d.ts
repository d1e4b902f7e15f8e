import { plasma, plasmaUsdt0 } from "@coinslot/protocol";
import type { Request } from "express";
import { describe, expectTypeOf, it } from "vitest";
import type {
  AuthorizedPayment,
  PaymentMiddlewareOptions,
  PaymentOption,
  PaymentRoutes,
  RequestPayment,
  RouteKey,
  RoutePayment,
  SettledPayment,
} from "../index.ts";

type Options<Change> = Omit<PaymentOption, keyof Change> & Change;

describe("a misconfiguration is a type error", () => {
  it("in a route key", () => {
    expectTypeOf<"GET /weather">().toExtend<RouteKey>();
    expectTypeOf<"* /weather/:city">().toExtend<RouteKey>();
    expectTypeOf<"/weather">().toExtend<RouteKey>();
    expectTypeOf<"FETCH /weather">().not.toExtend<RouteKey>();
    expectTypeOf<"GET,POST /weather">().not.toExtend<RouteKey>();
    expectTypeOf<"GET weather">().not.toExtend<RouteKey>();
    expectTypeOf<"weather">().not.toExtend<RouteKey>();
    expectTypeOf<{ "FETCH /x": RoutePayment }>().not.toEqualTypeOf<PaymentRoutes>();
  });

  it("in a way to pay", () => {
    expectTypeOf<Options<{ network: "eip155:9745" }>>().toExtend<PaymentOption>();
    expectTypeOf<Options<{ network: "base" }>>().not.toExtend<PaymentOption>();
    expectTypeOf<Options<{ scheme: "upto" }>>().not.toExtend<PaymentOption>();
    expectTypeOf<Options<{ payTo: string | undefined }>>().toExtend<PaymentOption>();
    expectTypeOf<Options<{ payTo: number }>>().not.toExtend<PaymentOption>();
    expectTypeOf<Options<{ price: "$0.001" }>>().toExtend<PaymentOption>();
    expectTypeOf<Options<{ price: "0.001" }>>().toExtend<PaymentOption>();
    expectTypeOf<Options<{ price: "cheap" }>>().not.toExtend<PaymentOption>();
    expectTypeOf<Options<{ price: number }>>().toExtend<PaymentOption>();
    expectTypeOf<Options<{ price: bigint }>>().not.toExtend<PaymentOption>();
    type NoDomain = { amount: string; asset: `0x${string}` };
    expectTypeOf<Options<{ price: NoDomain }>>().not.toExtend<PaymentOption>();
    type NumericAmount = {
      amount: number;
      asset: `0x${string}`;
      extra: { name: string; version: string };
    };
    expectTypeOf<Options<{ price: NumericAmount }>>().not.toExtend<PaymentOption>();
    expectTypeOf<Options<{ price: () => Promise<"$1"> }>>().toExtend<PaymentOption>();
    expectTypeOf<Options<{ price: (request: Request) => "$1" }>>().toExtend<PaymentOption>();
  });

  it("in a flow", () => {
    type Upfront = { accepts: PaymentOption; paymentFlow: "upfront" };
    expectTypeOf<Upfront>().toExtend<RoutePayment>();
    expectTypeOf<{ accepts: PaymentOption; paymentFlow: "later" }>().not.toExtend<RoutePayment>();
    expectTypeOf<{ paymentFlow: "upfront" }>().not.toExtend<RoutePayment>();
    expectTypeOf<{ accepts: PaymentOption; onDisconnect: "ignore" }>().not.toExtend<RoutePayment>();
    type HandlerTimeout = { handlerTimeoutSeconds: number };
    expectTypeOf<Extract<RoutePayment, HandlerTimeout>>().toBeNever();
  });

  it("in a hook", () => {
    expectTypeOf<{ grantAccess: () => "yes" }>().not.toExtend<PaymentMiddlewareOptions>();
    expectTypeOf<{ grantAccess: () => Promise<boolean> }>().toExtend<PaymentMiddlewareOptions>();
  });
});

describe("a handler sees", () => {
  it("the payment of its request, if it was sold", () => {
    expectTypeOf<Request["payment"]>().toEqualTypeOf<RequestPayment | undefined>();
    expectTypeOf<AuthorizedPayment>().toHaveProperty("waive");
    expectTypeOf<SettledPayment>().not.toHaveProperty("waive");
    expectTypeOf<SettledPayment>().toHaveProperty("settlement");
  });
});

describe("the README's way to write a route", () => {
  it("is of the right types", () => {
    const routes: PaymentRoutes = {
      "GET /weather": {
        accepts: [
          {
            scheme: "exact",
            network: plasma,
            payTo: plasmaUsdt0.address,
            price: {
              amount: "1000",
              asset: plasmaUsdt0.address,
              extra: { name: "USDT0", version: "1", decimals: 6 },
            },
          },
        ],
        description: "Weather data",
        mimeType: "application/json",
      },
    };
    expectTypeOf(routes).toEqualTypeOf<PaymentRoutes>();
  });
});
