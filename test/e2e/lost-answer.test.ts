import { createPayingFetch, OutcomeUnclearError, paymentOf, receiptOf } from "@coinslot/client";
import { type Listening, listen } from "@coinslot/devnet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { balanceOf } from "../support/balance.ts";
import { openWeatherShop, priceOfWeather, type WeatherShop } from "../support/seller.ts";

let shop: WeatherShop;

beforeAll(async () => {
  shop = await openWeatherShop();
});

afterAll(() => shop?.close());

/** A way to the seller on which the first answer to a payment is lost, after the seller gave it. */
async function startLossyProxy(): Promise<Listening & { payments: string[] }> {
  const { seller } = shop;
  const payments: string[] = [];
  const proxy = await listen(async (request, response) => {
    const headers = new Headers();
    for (const [name, value] of Object.entries(request.headers)) {
      if (typeof value === "string" && name !== "connection") headers.set(name, value);
    }
    const answer = await fetch(`${seller.url}${request.url}`, { headers });
    const body = await answer.text();
    const payment = headers.get("PAYMENT-SIGNATURE");
    if (payment !== null) payments.push(payment);
    if (payments.length === 1) return void response.destroy();
    // The resource in the offer is the seller's own URL; behind a proxy it would need publicUrl.
    const offer = answer.headers.get("PAYMENT-REQUIRED");
    const publicOffer =
      offer &&
      Buffer.from(
        Buffer.from(offer, "base64").toString().replaceAll(seller.url, proxy.url),
      ).toString("base64");
    const receipt = answer.headers.get("PAYMENT-RESPONSE");
    response.writeHead(answer.status, {
      "Content-Type": "application/json",
      ...(publicOffer ? { "PAYMENT-REQUIRED": publicOffer } : {}),
      ...(receipt ? { "PAYMENT-RESPONSE": receipt } : {}),
    });
    response.end(body);
  });
  return { ...proxy, payments };
}

/** Pays once through a proxy that loses the first answer, and returns the answer and its cost. */
async function buy(path: string) {
  const proxy = await startLossyProxy();
  const { devnet, seller } = shop;
  const before = await balanceOf(devnet, devnet.accounts.seller.address);
  const runsBefore = seller.runs();
  const states: string[] = [];
  try {
    const pay = createPayingFetch({
      account: devnet.accounts.buyer,
      rpcUrls: { [devnet.network]: devnet.rpcUrl },
      onPayment: ({ state }) => states.push(state),
    });
    const got = await pay(`${proxy.url}${path}`).catch((error: unknown) => error);
    const paid = (await balanceOf(devnet, devnet.accounts.seller.address)) - before;
    return { got, paid, states, runs: seller.runs() - runsBefore, payments: proxy.payments };
  } finally {
    await proxy.close();
  }
}

describe("an answer that is lost after its payment was settled", () => {
  it("reaches our client at its next attempt; the handler ran once and was paid once", async () => {
    const { got, paid, states, runs, payments } = await buy("/weather");
    if (!(got instanceof Response)) throw got;
    expect(got.status).toBe(200);
    expect(paymentOf(got)?.state).toBe("settled");
    expect(receiptOf(got)?.transaction).toMatch(/^0x[0-9a-f]{64}$/);
    expect(states).toEqual(["booked", "signed", "sent", "sent", "settled"]);
    expect(payments).toHaveLength(2);
    expect(new Set(payments).size).toBe(1);
    expect({ paid, runs }).toEqual({ paid: priceOfWeather, runs: 1 });
  });

  it("is lost for good where it streamed, and the error reports a possible payment instead of a plain 402", async () => {
    const { got, paid, runs } = await buy("/stream");
    expect(got).toBeInstanceOf(OutcomeUnclearError);
    expect(got).toMatchObject({ status: 402, reason: "invalid_exact_evm_nonce_already_used" });
    expect({ paid, runs }).toEqual({ paid: priceOfWeather, runs: 1 });
  });
});
