import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { effort } from "@coinslot/devnet/effort";
import { freezeMessage, headerName, plasma, plasmaUsdt0 } from "@coinslot/protocol";
import express, { type Request } from "express";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Offer } from "../offer/offer.ts";
import { readPayment } from "./read-payment.ts";
import { createWires } from "./registry.ts";

const socket = new Socket();
const wires = await createWires({
  settings: {
    legacyNetworkNames: false,
    mpp: { mode: true, secrets: undefined, realm: "shop.example", header: undefined },
    publicUrl: undefined,
    now: Date.now,
    onError: () => undefined,
  },
  facilitator: {},
  routes: [],
});

const offer = freezeOffer();

function freezeOffer(): Offer {
  const requirements = freezeMessage({
    scheme: "exact" as const,
    network: plasma,
    amount: "1000",
    asset: plasmaUsdt0.address,
    payTo: plasmaUsdt0.address,
    maxTimeoutSeconds: 300,
    extra: {},
  });
  return [{ requirements, versions: new Set([1, 2] as const), mpp: true }];
}

function requestWith(name: string, value: string): Request {
  const request: Request = Object.setPrototypeOf(new IncomingMessage(socket), express.request);
  request.rawHeaders.push(name, value);
  request.headers[name.toLowerCase()] = value;
  request.headersDistinct[name.toLowerCase()] = [value];
  return request;
}

const anyJson = fc.json({ depthSize: "large" }).map((json) => Buffer.from(json).toString("base64"));
const anything = fc.oneof(
  fc.string({ maxLength: 200 }),
  fc.string({ unit: "binary", maxLength: 200 }),
  fc.base64String({ maxLength: 400 }),
  anyJson,
);

describe.each([headerName.payment, headerName.paymentSignature])("reading %s", (name) => {
  it("reports any malformed input, and never throws", { timeout: 60_000 }, () => {
    fc.assert(
      fc.property(anything, (value) => {
        expect(readPayment(requestWith(name, value), { wires, offer }).state).toBe("malformed");
      }),
      { numRuns: 2_000 * effort },
    );
  });
});

describe.each([headerName.authorization, headerName.paymentAuthorization])("reading %s", (name) => {
  it("reports any malformed credential, and never throws", { timeout: 60_000 }, () => {
    fc.assert(
      fc.property(anything, (value) => {
        expect(readPayment(requestWith(name, `Payment ${value}`), { wires, offer }).state).toBe(
          "malformed",
        );
      }),
      { numRuns: 2_000 * effort },
    );
  });

  it("leaves any other scheme to the application", () => {
    for (const value of ["Bearer abc", "Basic YTpi", "Payments abc", "payment-v2 abc", ""])
      expect(readPayment(requestWith(name, value), { wires, offer }).state).toBe("absent");
  });
});
