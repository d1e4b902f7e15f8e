import { listen } from "@coinslot/devnet";
import {
  CallerGoneError,
  FacilitatorError,
  headerName,
  type PaymentRequirements,
  plasma,
  readPayment,
} from "@coinslot/protocol";
import supertest from "supertest";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  createFacilitatorClient,
  type EventOptions,
  facilitatorRouter,
  type SettlementNews,
} from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";
import { type EventReceiver, openReceiver } from "../testing/event-receiver.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";

/** Timeout for conditions, on a busy machine. */
const patience = { timeout: 20_000 };

const requirements: PaymentRequirements = {
  scheme: "exact",
  network: plasma,
  amount: "1000",
  asset: "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb",
  payTo: "0x00000000000000000000000000000000000beef1",
  maxTimeoutSeconds: 300,
  extra: { name: "USDT0", version: "1" },
};
const hash = `0x${"ab".repeat(32)}`;
type News = Parameters<Parameters<SettlementNews["onEvent"]>[0]>[0];

describe.each(expressVersions)("lifecycle events on $name", ({ express }) => {
  async function open(options: { events?: EventOptions; hasNews?: boolean } = {}) {
    const { events = { unsafeAllowPrivateAddresses: true }, hasNews = false } = options;
    const facilitator = createPaperFacilitator();
    const listeners = new Set<(event: News) => void>();
    const news: SettlementNews = {
      onEvent(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    };
    if (hasNews) Object.assign(facilitator, news);
    const router = facilitatorRouter(facilitator, { onError: () => undefined, events });
    const [listening, receiver] = await Promise.all([
      listen(express().use(router)),
      openReceiver(),
    ]);
    onTestFinished(async () => {
      await Promise.all([listening.close(), receiver.close()]);
    });
    const { url } = listening;
    const client = createFacilitatorClient({ url, eventCallback: `${receiver.url}/shop-7` });
    const emit = (event: News) => {
      for (const listener of listeners) listener(event);
    };
    return { facilitator, url, receiver, client, emit, listeners };
  }

  async function sign() {
    const { payload, headers } = await createBuyer().sign({
      x402Version: 2,
      requirements,
      accepted: requirements,
    });
    const read = readPayment(payload, requirements);
    if (!read.ok) throw new Error(read.reason);
    return { payload, headers, authorization: read.payment.id };
  }

  function received({ types }: EventReceiver, expected: readonly string[]) {
    return expect.poll(types, { timeout: 20_000, interval: 5 }).toEqual(expected);
  }

  it("report a verification, with its payment", async () => {
    const { client, receiver } = await open();
    const { payload, authorization } = await sign();
    expect(await client.verify(payload, requirements)).toMatchObject({ isValid: true });
    await received(receiver, ["verify_started", "verify_completed"]);
    const [started, completed] = receiver.received;
    expect(started?.path).toBe("/shop-7");
    expect(started?.event.details).toEqual({
      ...authorization,
      checks: ["recipient", "amount", "validity", "signature", "nonce", "balance"],
    });
    expect(completed?.event.details).toEqual({ ...authorization, isValid: true });
    const { signature } = payload.payload;
    expect(receiver.received.map(({ body }) => body).join()).not.toContain(signature);
  });

  it("report an invalid payment as a completed verification", async () => {
    const { client, receiver, facilitator } = await open();
    facilitator.onVerify = () => ({ isValid: false, invalidReason: "invalid_network" });
    const { payload } = await sign();
    await client.verify(payload, requirements);
    await received(receiver, ["verify_started", "verify_completed"]);
    expect(receiver.received[1]?.event.details).toMatchObject({
      isValid: false,
      invalidReason: "invalid_network",
    });
  });

  it("report a failed verification without its reason", async () => {
    const { client, receiver, facilitator } = await open();
    facilitator.onVerify = () => {
      throw new FacilitatorError("http://rpc.example/key", { kind: "unavailable" });
    };
    const { payload } = await sign();
    await expect(client.verify(payload, requirements)).rejects.toThrow(FacilitatorError);
    await received(receiver, ["verify_started", "verify_failed"]);
    expect(receiver.received[1]?.event.details).toMatchObject({ error: "unexpected_verify_error" });
    expect(receiver.received.map(({ body }) => body).join()).not.toContain("rpc");
  });

  it("report no end of a verification whose caller has left: it is no fault", async () => {
    const { client, url, receiver, facilitator } = await open();
    const { payload } = await sign();
    const leaving = new AbortController();
    facilitator.onVerify = () => {
      leaving.abort();
      throw new CallerGoneError();
    };
    const call = fetch(`${url}/verify`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        [headerName.eventCallback]: `${receiver.url}/shop-7`,
      },
      body: JSON.stringify({
        x402Version: 2,
        paymentPayload: payload,
        paymentRequirements: requirements,
      }),
      signal: leaving.signal,
    });
    await expect(call).rejects.toThrow();
    await received(receiver, ["verify_started"]);
    facilitator.onVerify = () => ({ isValid: true });
    await client.verify(payload, requirements);
    await received(receiver, ["verify_started", "verify_started", "verify_completed"]);
  });

  it("report a settlement by its answer, where the facilitator reports no progress", async () => {
    const { client, receiver } = await open();
    const { payload, authorization } = await sign();
    const { transaction } = await client.settle(payload, requirements);
    await received(receiver, ["settle_started", "settle_completed"]);
    expect(receiver.received.map(({ event }) => event.details)).toEqual([
      authorization,
      { ...authorization, transactionHash: transaction },
    ]);
  });

  it("report a settlement's progress: at the broadcast, and in a block, once", async () => {
    const { client, receiver, facilitator, emit } = await open({ hasNews: true });
    const { payload, authorization } = await sign();
    const stranger = { ...authorization, nonce: authorization.payer } as const;
    let isAnswered = false;
    facilitator.onSettle = async (settle) => {
      emit({ type: "relayer_funds_low" });
      emit({ type: "settle_completed", authorization: stranger, transactionHash: hash });
      emit({ type: "settle_started", authorization, transactionHash: hash });
      emit({ type: "settle_started", authorization, transactionHash: hash });
      await received(receiver, ["settle_started"]);
      expect(isAnswered).toBe(false);
      emit({ type: "settle_completed", authorization, transactionHash: hash });
      return settle();
    };
    await client.settle(payload, requirements);
    isAnswered = true;
    emit({ type: "settle_completed", authorization, transactionHash: hash });
    await client.verify(payload, requirements);
    await received(receiver, [
      "settle_started",
      "settle_completed",
      "verify_started",
      "verify_completed",
    ]);
  });

  it("report the outcome of a settlement that was answered as pending", async () => {
    const { client, receiver, facilitator, emit } = await open({ hasNews: true });
    const { payload, authorization } = await sign();
    facilitator.onSettle = async () => ({
      success: false,
      errorReason: "settlement_pending",
      transaction: hash,
      network: plasma,
    });
    expect(await client.settle(payload, requirements)).toMatchObject({ success: false });
    await received(receiver, ["settle_started"]);
    emit({ type: "settle_completed", authorization, transactionHash: hash });
    await received(receiver, ["settle_started", "settle_completed"]);
  });

  it("report a failed settlement, without a start where it was never broadcast", async () => {
    const { client, receiver, facilitator } = await open({ hasNews: true });
    const { payload } = await sign();
    facilitator.onSettle = async () => ({
      success: false,
      errorReason: "invalid_exact_evm_insufficient_balance",
      transaction: "",
      network: plasma,
    });
    await client.settle(payload, requirements);
    await received(receiver, ["settle_failed"]);
    expect(receiver.received[0]?.event.details).toMatchObject({
      error: "invalid_exact_evm_insufficient_balance",
    });
  });

  it("report a fault before the broadcast as a failure, and wait for the outcome after it", async () => {
    const { client, receiver, facilitator, emit } = await open({ hasNews: true });
    const { payload, authorization } = await sign();
    facilitator.onSettle = async () => {
      throw new FacilitatorError("no ledger", { kind: "unavailable" });
    };
    await expect(client.settle(payload, requirements)).rejects.toThrow(FacilitatorError);
    await received(receiver, ["settle_failed"]);
    facilitator.onSettle = async () => {
      emit({ type: "settle_started", authorization });
      throw new FacilitatorError("no ledger", { kind: "unavailable" });
    };
    await expect(client.settle(payload, requirements)).rejects.toThrow(FacilitatorError);
    await received(receiver, ["settle_failed", "settle_started"]);
    emit({ type: "settle_failed", authorization, reason: "invalid_exact_evm_transaction_failed" });
    await received(receiver, ["settle_failed", "settle_started", "settle_failed"]);
    expect(receiver.received[2]?.event.details).toMatchObject({
      error: "invalid_exact_evm_transaction_failed",
    });
  });

  it("are not sent without a callback URL, nor to an invalid one, and payments continue", async () => {
    const { url, receiver } = await open();
    const { payload } = await sign();
    const body = { x402Version: 2, paymentPayload: payload, paymentRequirements: requirements };
    for (const callback of [undefined, "", "nowhere", "ftp://x/", `${receiver.url}, https://b/`]) {
      const header = callback === undefined ? {} : { "X-Event-Callback": callback };
      const answer = await supertest(url).post("/verify").set(header).send(body).expect(200);
      expect(answer.body).toMatchObject({ isValid: true });
    }
    const silent = await open({ events: {} });
    expect(await silent.client.settle(payload, requirements)).toMatchObject({ success: true });
    expect(receiver.requests() + silent.receiver.requests()).toBe(0);
  });

  it("delay no payment: a receiver that never answers is not waited for", async () => {
    const { url } = await open({
      events: { unsafeAllowPrivateAddresses: true, timeoutMs: 60_000, maxWaiting: 2 },
    });
    const deaf = await openReceiver(() => undefined);
    onTestFinished(() => deaf.close());
    const client = createFacilitatorClient({ url, eventCallback: deaf.url });
    for (let count = 0; count < 5; count += 1) {
      const { payload } = await sign();
      expect(await client.verify(payload, requirements)).toMatchObject({ isValid: true });
      expect(await client.settle(payload, requirements)).toMatchObject({ success: true });
    }
    // No event has been answered, and all payments have.
    await expect.poll(() => deaf.requests(), patience).toBeGreaterThan(0);
  });

  it("end with the abort signal, and no settlement is followed after it", async () => {
    const ending = new AbortController();
    const { listeners } = await open({ events: { signal: ending.signal }, hasNews: true });
    expect(listeners.size).toBe(1);
    ending.abort();
    expect(listeners.size).toBe(0);
  });
});
