import { CallerGoneError, readPayment, toLowerHex } from "@coinslot/protocol";
import { afterEach, describe, expect, it } from "vitest";
import { type Buyer, createBuyer } from "../testing/buyer.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";
import { createReservationStore } from "./reservation-store.ts";
import { withReservations } from "./with-reservations.ts";

const minuteMs = 60_000;
const bodyBytes = 4_096;
const from = toLowerHex(`0x${"5".repeat(40)}`);
const opened: Shop[] = [];
let time = startOfMinute();

afterEach(async () => {
  time = startOfMinute();
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

function startOfMinute(): number {
  return Math.floor(Date.now() / minuteMs) * minuteMs;
}

/**
 * A shop whose facilitator keeps no reservations, like a remote one. Its callers name themselves.
 */
async function open({ status = 200 } = {}) {
  let calls = 0;
  let closed = 0;
  const shop = await openShop({
    routes: { "/sold": { accepts: option(), maxTimeoutSeconds: 600 } },
    before: (app) =>
      app.use((_, response, next) => {
        response.once("close", () => {
          closed += 1;
        });
        next();
      }),
    serve: (app) => app.use("/sold", (_, response) => void response.status(status).send("content")),
    options: {
      maxRequestBytes: bodyBytes,
      maxUnverifiedBytes: 2 * bodyBytes,
      now: () => time,
      clientKey(request) {
        calls += 1;
        return request.get("X-Caller");
      },
      onError: () => undefined,
    },
  });
  opened.push(shop);
  const url = `${shop.url}/sold`;
  return {
    ...shop,
    /** Payments that have reached the shop. */
    calls: () => calls,
    /** Responses that are sent, or whose buyers have left. */
    closed: () => closed,
    send: (headers: Record<string, string>, caller = "one", init: RequestInit = {}) =>
      fetch(url, { ...init, headers: { ...headers, "X-Caller": caller } }),
    pay: async (buyer: Buyer = createBuyer()) => (await buyer.payFor(url)).headers,
    /** A payment in the name of another payer than the key that signs it. */
    forge: async () => (await createBuyer().payFor(url, { authorization: { from } })).headers,
  };
}

function withAbort() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}

/** Holds each verification of a shop until the gate opens. */
function holdVerifications({ facilitator }: Shop): { open: () => void } {
  let open = () => {};
  const isOpen = new Promise<void>((resolve) => {
    open = resolve;
  });
  facilitator.onVerify = async () => {
    await isOpen;
    return { isValid: true };
  };
  return { open };
}

function many<T>(count: number, make: () => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, make));
}

describe("a remote facilitator", () => {
  it("is asked about 30 forged payments of a caller in a minute, also when they are concurrent", async () => {
    const shop = await open();
    const forged = await many(50, shop.forge);
    const answers = await Promise.all(forged.map((headers) => shop.send(headers)));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array(30).fill(402), ...Array(20).fill(503)]);
    expect(shop.facilitator.verifications).toBe(30);
    const limited = answers.find(({ status }) => status === 503);
    expect(limited?.headers.get("Retry-After")).toBe("60");
    time += minuteMs;
    expect((await shop.send(await shop.forge())).status).toBe(402);
  });

  it("is asked about other callers' payments, and about those with a key's valid signature", async () => {
    const shop = await open();
    for (const headers of await many(31, shop.forge)) await shop.send(headers);
    expect((await shop.send(await shop.forge(), "another")).status).toBe(402);
    expect((await shop.send(await shop.pay())).status).toBe(200);
  });

  it("is asked about 30 refused payments with a key's valid signature per caller and minute", async () => {
    const shop = await open();
    shop.facilitator.onVerify = () => ({
      isValid: false,
      invalidReason: "invalid_exact_evm_insufficient_balance",
    });
    for (const headers of await many(30, shop.pay)) {
      expect((await shop.send(headers)).status).toBe(402);
    }
    expect((await shop.send(await shop.pay())).status).toBe(503);
    expect(shop.facilitator.verifications).toBe(30);
    shop.facilitator.onVerify = undefined;
    expect((await shop.send(await shop.pay(), "another")).status).toBe(200);
  });

  it("is still asked for a payer that has paid through the same caller within the hour", async () => {
    const shop = await open();
    const buyer = createBuyer();
    expect((await shop.send(await shop.pay(buyer))).status).toBe(200);
    shop.facilitator.onVerify = () => ({
      isValid: false,
      invalidReason: "invalid_exact_evm_insufficient_balance",
    });
    for (const headers of await many(31, shop.pay)) await shop.send(headers);
    shop.facilitator.onVerify = undefined;
    expect((await shop.send(await shop.pay(buyer))).status).toBe(200);
    expect((await shop.send(await shop.pay(buyer), "another")).status).toBe(200);
    expect((await shop.send(await shop.pay())).status).toBe(503);
  });

  it("is asked about 30 payments of a burst of refused ones with a key's valid signature", async () => {
    const shop = await open();
    let openGate = () => {};
    const isOpen = new Promise<void>((resolve) => {
      openGate = resolve;
    });
    shop.facilitator.onVerify = async () => {
      await isOpen;
      return { isValid: false, invalidReason: "invalid_exact_evm_insufficient_balance" };
    };
    const headers = await many(60, shop.pay);
    const answers = headers.map((each) => shop.send(each));
    await expect.poll(() => shop.facilitator.verifications).toBeGreaterThanOrEqual(30);
    openGate();
    const statuses = (await Promise.all(answers)).map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array(30).fill(402), ...Array(30).fill(503)]);
    expect(shop.facilitator.verifications).toBe(30);
  });

  it("is asked about all valid payments of a burst, 30 of a caller at a time", async () => {
    const shop = await open();
    let running = 0;
    let openGate = () => {};
    const isOpen = new Promise<void>((resolve) => {
      openGate = resolve;
    });
    const { verify } = shop.facilitator;
    shop.facilitator.verify = async (...given) => {
      running += 1;
      await isOpen;
      return verify(...given);
    };
    const headers = await many(60, shop.pay);
    const answers = headers.map((each) => shop.send(each));
    await expect.poll(() => shop.calls()).toBe(60);
    await expect.poll(() => running).toBe(30);
    openGate();
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    expect(statuses).toEqual(Array(60).fill(200));
  });

  it("is not asked about waiting payments whose buyers have left", async () => {
    const shop = await open();
    const gate = holdVerifications(shop);
    const headers = await many(51, shop.pay);
    const running = headers.slice(0, 30).map((each) => shop.send(each));
    await expect.poll(() => shop.facilitator.verifications).toBe(30);
    const offers = shop.closed();
    const { signal, abort } = withAbort();
    const left = headers.slice(30, 50).map((each) => shop.send(each, "one", { signal }));
    await expect.poll(shop.calls).toBe(50);
    abort();
    await Promise.allSettled(left);
    await expect.poll(shop.closed).toBe(offers + 20);
    const last = shop.send(headers[50] ?? {});
    gate.open();
    expect((await last).status).toBe(200);
    expect((await Promise.all(running)).map(({ status }) => status)).toEqual(Array(30).fill(200));
    expect(shop.facilitator.verifications).toBe(31);
  });

  it("lets bodies wait for it in half of their room only", async () => {
    const shop = await open();
    const gate = holdVerifications(shop);
    const headers = await many(60, shop.pay);
    const running = headers.map((each, index) => shop.send(each, index < 30 ? "one" : "two"));
    await expect.poll(() => shop.facilitator.verifications).toBe(60);
    const init = { method: "POST", body: Buffer.alloc(bodyBytes, "x") };
    const waiting = shop.send(await shop.pay(), "one", init);
    await expect.poll(shop.calls).toBe(61);
    expect((await shop.send(await shop.pay(), "two", init)).status).toBe(503);
    gate.open();
    expect((await waiting).status).toBe(200);
    await Promise.all(running);
  });

  it("is no longer asked for a payer with verified payments that never settled", async () => {
    const shop = await open({ status: 500 });
    const buyer = createBuyer();
    expect((await shop.send(await shop.pay(buyer))).status).toBe(500);
    shop.facilitator.onVerify = () => ({
      isValid: false,
      invalidReason: "invalid_exact_evm_insufficient_balance",
    });
    for (const headers of await many(30, shop.pay)) await shop.send(headers);
    shop.facilitator.onVerify = undefined;
    expect((await shop.send(await shop.pay(buyer))).status).toBe(503);
  });

  it("is asked 300 times a minute about a caller's valid payments for which no handler runs", async () => {
    const shop = await open({ status: 404 });
    const buyer = createBuyer();
    const statuses = new Map<number, number>();
    for (let count = 0; count < 340; count += 1) {
      const { status } = await shop.send(await shop.pay(buyer));
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    expect(Object.fromEntries(statuses)).toEqual({ 404: 20, 429: 300, 503: 20 });
    expect(shop.facilitator.verifications).toBe(320);
    expect((await shop.send(await shop.pay(), "another")).status).toBe(404);
    time += minuteMs;
    expect((await shop.send(await shop.pay(buyer))).status).toBe(404);
  });

  it("is asked about any number of payments of wallets with code whose handlers run", async () => {
    const shop = await open();
    shop.facilitator.verify = async () => {
      shop.facilitator.verifications += 1;
      return { isValid: true };
    };
    const init = { method: "POST", body: "order" };
    const statuses = new Map<number, number>();
    for (let index = 1; index <= 310; index += 1) {
      const wallet = toLowerHex(`0x5${index.toString(16).padStart(39, "0")}`);
      const authorization = { from: wallet };
      const { headers } = await createBuyer().payFor(`${shop.url}/sold`, { init, authorization });
      const { status } = await shop.send(headers, "gateway", init);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    expect(Object.fromEntries(statuses)).toEqual({ 200: 310 });
    // Before the body is read, and after.
    expect(shop.facilitator.verifications).toBe(620);
  });

  it("is asked 300 times a minute about a caller's valid payments whose buyers leave at once", async () => {
    const paper = createPaperFacilitator();
    const store = createReservationStore({ now: () => time });
    const facilitator = withReservations(paper, store, { now: () => time });
    const shop = await open();
    const buyer = createBuyer();
    const buy = async () => {
      const { payload } = await buyer.payFor(`${shop.url}/sold`);
      if (payload.x402Version !== 2) throw new Error("Another version");
      const { accepted: requirements } = payload;
      const read = readPayment(payload, requirements);
      if (!read.ok) throw new Error(read.reason);
      await facilitator.verify(payload, requirements, { limitKey: "one" });
      const { id, authorization } = read.payment;
      const { value, validBefore, to: payTo } = authorization;
      const request = { id, fingerprint: "", keyHash: undefined };
      return facilitator.reserve({ value, validBefore, payTo, ...request });
    };
    for (let count = 0; count < 300; count += 1) {
      const reserved = await buy();
      if (reserved.state !== "reserved") throw new Error(reserved.state);
      await facilitator.release(reserved.reservation, "unused", { hasRun: false });
    }
    await expect(buy()).rejects.toThrow(/try again later/);
    expect(paper.verifications).toBe(300);
  });

  it("is asked 300 times a minute about valid payments whose buyers leave meanwhile", async () => {
    const paper = createPaperFacilitator();
    const store = createReservationStore({ now: () => time });
    const facilitator = withReservations(paper, store, { now: () => time });
    const shop = await open();
    const buyer = createBuyer();
    const buy = async (isGone: () => boolean) => {
      const { payload } = await buyer.payFor(`${shop.url}/sold`);
      if (payload.x402Version !== 2) throw new Error("Another version");
      const wait = { mayWait: () => true, isGone };
      return facilitator.verify(payload, payload.accepted, { limitKey: "one", wait });
    };
    for (let count = 0; count < 300; count += 1) {
      let isGone = false;
      paper.onVerify = () => {
        isGone = true;
        return { isValid: true };
      };
      await expect(buy(() => isGone)).rejects.toBeInstanceOf(CallerGoneError);
    }
    await expect(buy(() => false)).rejects.toThrow(/ran no handler/);
    expect(paper.verifications).toBe(300);
  });

  it("a remote facilitator that fails to answer charges no caller's budget", async () => {
    const shop = await open();
    const { verify } = shop.facilitator;
    shop.facilitator.verify = () => Promise.reject(new Error("The connection was lost"));
    for (const headers of await many(31, shop.forge)) await shop.send(headers);
    for (const headers of await many(31, shop.pay)) await shop.send(headers);
    shop.facilitator.verify = verify;
    expect((await shop.send(await shop.forge())).status).toBe(402);
    expect((await shop.send(await shop.pay())).status).toBe(200);
  });
});
