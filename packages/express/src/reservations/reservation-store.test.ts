import { randomBytes } from "node:crypto";
import {
  type AuthorizationId,
  type Hex,
  plasma,
  type Reservation,
  type ReservationStore,
  type SettleResponse,
} from "@coinslot/protocol";
import supertest from "supertest";
import { describe, expect, it } from "vitest";
import { createBuyer } from "../testing/buyer.ts";
import { openShop, option } from "../testing/shop.ts";
import { createReservationStore } from "./reservation-store.ts";

function identity(nonce: Hex = `0x${randomBytes(32).toString("hex")}`): AuthorizationId {
  return {
    network: plasma,
    asset: "0xb8ce59fc3717ada4c02eadf9682a9e934f625ebb",
    payer: "0x00000000000000000000000000000000000000a1",
    nonce,
  };
}

const success: SettleResponse = { success: true, transaction: "0x1", network: plasma };
const failure: SettleResponse = { success: false, transaction: "", network: plasma };
const request = (id: AuthorizationId, keyHash?: string) => ({
  id,
  fingerprint: "one",
  keyHash,
  value: 1n,
  validBefore: 1000n,
  payTo: id.payer,
});

async function reserve(
  store: ReservationStore,
  id: AuthorizationId,
  keyHash?: string,
): Promise<Reservation> {
  const reserved = await store.reserve(request(id, keyHash));
  if (reserved.state !== "reserved") throw new Error(`It is ${reserved.state}`);
  return reserved.reservation;
}

const statesOf = (store: ReservationStore, id: AuthorizationId, keyHash?: string) =>
  Promise.all(
    ["one", "other"].map(
      async (fingerprint) => (await store.lookUp({ id, fingerprint, keyHash })).state,
    ),
  );

describe("the reservation store in memory", () => {
  it("grants free runs for payments of the same price or more in the same token", async () => {
    const limits = { maxReleasesPerMinute: 1, releasesPerPaid: 1, now: () => 0 };
    const store = createReservationStore(limits);
    for (let count = 0; count < 3; count += 1) {
      const reservation = await reserve(store, identity());
      await store.beginSettlement(reservation);
      await store.endSettlement(reservation, success);
    }
    await store.release(await reserve(store, identity()), "handler_failed");
    const dearer = { ...request(identity()), value: 2n };
    const other = request({ ...identity(), asset: "0x00000000000000000000000000000000000000b2" });
    expect(await store.reserve(dearer)).toMatchObject({ state: "payer_limited" });
    expect(await store.reserve(other)).toMatchObject({ state: "payer_limited" });
    expect(await store.reserve(request(identity()))).toMatchObject({ state: "reserved" });
  });

  it("gives an authorization to one request at a time", async () => {
    const store = createReservationStore();
    const id = identity();
    expect(await statesOf(store, id)).toEqual(["free", "free"]);
    const reservation = await reserve(store, id);
    expect(await statesOf(store, id)).toEqual(["in_use", "in_use"]);
    expect(await store.reserve(request(id))).toEqual({ state: "in_use" });
    await store.release(reservation, "handler_failed");
    expect(await statesOf(store, id)).toEqual(["free", "free"]);
  });

  it("resumes a begun settlement for the same request only", async () => {
    const store = createReservationStore();
    const id = identity();
    const reservation = await reserve(store, id);
    const begun = await store.beginSettlement(reservation);
    await store.release(reservation, "outcome_unknown");
    expect(await statesOf(store, id)).toEqual(["resumable", "in_use"]);
    const resumed = await store.reserve(request(id));
    if (resumed.state !== "resumed") throw new Error(resumed.state);
    expect(await store.beginSettlement(resumed.reservation)).toEqual({
      ...begun,
      state: "repeated",
    });
    await store.endSettlement(resumed.reservation, success);
    await store.release(resumed.reservation, "disconnected");
    expect(await statesOf(store, id)).toEqual(["resumable", "in_use"]);
  });

  it("reports settled payments, which are used up when delivered", async () => {
    const store = createReservationStore();
    const id = identity();
    const reservation = await reserve(store, id);
    await store.beginSettlement(reservation);
    await store.endSettlement(reservation, success);
    expect(await store.beginSettlement(reservation)).toEqual({
      state: "settled",
      settlement: success,
    });
    await store.deliver(reservation);
    expect(await statesOf(store, id)).toEqual(["delivered", "delivered"]);
    await store.release(reservation, "handler_failed");
    expect(await statesOf(store, id)).toEqual(["delivered", "delivered"]);
  });

  it("frees a payment with a refused settlement", async () => {
    const store = createReservationStore();
    const id = identity();
    const reservation = await reserve(store, id);
    await store.beginSettlement(reservation);
    await store.endSettlement(reservation, failure);
    expect(await statesOf(store, id)).toEqual(["free", "free"]);
  });

  it("returns a kept answer for its key, and for no other", async () => {
    const store = createReservationStore();
    const id = identity();
    const answer = { keyHash: "key", sealed: new Uint8Array([1]) };
    const reservation = await reserve(store, id, "key");
    await store.beginSettlement(reservation, answer);
    await store.release(reservation, "outcome_unknown");
    expect(await statesOf(store, id)).toEqual(["in_use", "in_use"]);
    expect(await statesOf(store, id, "key")).toEqual(["resumable", "key_conflict"]);
    const resumed = await store.reserve(request(id, "key"));
    expect(resumed).toMatchObject({ state: "resumed", isKeyed: true, answer });
    if (resumed.state !== "resumed") throw new Error(resumed.state);
    await store.endSettlement(resumed.reservation, success);
    await store.deliver(resumed.reservation);
    expect(await store.lookUp(request(id, "key"))).toMatchObject({ state: "delivered", answer });
    expect(await store.lookUp(request(id))).toEqual({ state: "delivered", settlement: success });
    expect(await store.lookUp(request(identity(), "key"))).toEqual({ state: "key_conflict" });
  });

  it("resumes a payment that began without a key under any, which gains no right by it", async () => {
    const store = createReservationStore();
    const id = identity();
    const reservation = await reserve(store, id);
    await store.beginSettlement(reservation);
    await store.release(reservation, "outcome_unknown");
    expect(await statesOf(store, id, "key")).toEqual(["resumable", "in_use"]);
    const resumed = await store.reserve(request(id, "key"));
    expect(resumed).toMatchObject({ state: "resumed", isKeyed: false });
    if (resumed.state !== "resumed") throw new Error(resumed.state);
    await store.release(resumed.reservation, "outcome_unknown");
    expect(await store.reserve(request(id))).toMatchObject({ state: "resumed", isKeyed: false });
    expect(await statesOf(store, identity(), "key")).toEqual(["free", "free"]);
  });

  it("ends a reservation for its token only", async () => {
    const store = createReservationStore();
    const id = identity();
    await reserve(store, id);
    const forged = { id, token: "guessed" };
    await store.release(forged, "refused");
    await store.deliver(forged);
    await expect(store.beginSettlement(forged)).rejects.toThrow("not held");
    expect(await statesOf(store, id)).toEqual(["in_use", "in_use"]);
  });

  it("refuses a payer over its limit of free runs, for a while", async () => {
    let now = 0;
    const store = createReservationStore({ maxReleasesPerMinute: 2, now: () => now });
    for (const cause of ["waived", "handler_failed", "disconnected"] as const) {
      await store.release(await reserve(store, identity()), cause);
    }
    expect(await store.reserve(request(identity()))).toEqual({
      state: "payer_limited",
      retryAfterSeconds: 60,
      isRunning: false,
    });
    now = 60_000;
    expect(await store.reserve(request(identity()))).toMatchObject({ state: "reserved" });
  });

  it("is bounded: finished entries make room, and entries in use stay", async () => {
    let now = 0;
    const store = createReservationStore({ maxPayments: 2, now: () => now });
    const delivered = await reserve(store, identity());
    await store.beginSettlement(delivered);
    await store.endSettlement(delivered, success);
    await store.deliver(delivered);
    const unclear = await reserve(store, identity());
    await store.beginSettlement(unclear);
    await store.release(unclear, "outcome_unknown");
    const running = await reserve(store, identity());
    expect(await statesOf(store, delivered.id)).toEqual(["free", "free"]);
    await expect(store.reserve(request(identity()))).rejects.toThrow("Too many payments");
    now = 1_000_000;
    await reserve(store, identity());
    expect(await statesOf(store, unclear.id)).toEqual(["free", "free"]);
    expect(await statesOf(store, running.id)).toEqual(["in_use", "in_use"]);
  });

  it("bounds the bytes of a payer's answers, and evicts its oldest first, never another's", async () => {
    const store = createReservationStore({ maxAnswerBytes: 100 });
    const another = { ...identity(), payer: `0x${"b2".repeat(20)}` } as const;
    const ids = [another, identity(), identity(), identity()];
    for (const [index, id] of ids.entries()) {
      const reservation = await reserve(store, id, `key ${index}`);
      const answer = { keyHash: `key ${index}`, sealed: new Uint8Array(10) };
      await store.beginSettlement(reservation, answer);
      await store.endSettlement(reservation, success);
      await store.deliver(reservation);
    }
    const kept = await Promise.all(
      ids.map(async (id, index) => {
        const found = await store.lookUp(request(id, `key ${index}`));
        return found.state === "delivered" && found.answer !== undefined;
      }),
    );
    expect(kept).toEqual([true, false, true, true]);
  });
});

describe("a custom reservation store", () => {
  it("a custom reservation store that throws when a payment attempt ends leaves no buyer without an answer", async () => {
    const broken = new Error("broken");
    const reservations: ReservationStore = {
      ...createReservationStore(),
      release() {
        throw broken;
      },
    };
    const shop = await openShop({
      options: { maxResponseBytes: 10, reservations },
      routes: { "GET /paid": { accepts: option() } },
      serve: (app) => app.get("/paid", (_request, response) => void response.send("x".repeat(11))),
    });
    try {
      const { headers } = await createBuyer().payFor(`${shop.url}/paid`);
      const answer = await supertest(shop.url).get("/paid").set(headers);
      expect(answer.body).toMatchObject({ error: "response_too_large" });
      expect(shop.errors).toEqual([broken]);
    } finally {
      await shop.close();
    }
  });
});

it("a reservation store whose bounds are no numbers is refused, with each of their names", () => {
  const none = Number.NaN;
  const create = () => createReservationStore({ maxPayments: none, maxReleasesPerMinute: none });
  expect(create).toThrow(/maxPayments must be a number[\s\S]*maxReleasesPerMinute/);
});
