import { describe, expect, it } from "vitest";
import { paymentOf, receiptOf } from "../index.ts";
import { startSeller } from "../testing/seller.ts";
import { createExpectations, firstAnswer, type OnPaid } from "../testing/unclear-payments.ts";
import { useWorld } from "../testing/world.ts";

const world = useWorld();
const { keep, createFetch, waits } = world;

const { unclearOf, expectSamePayment } = createExpectations(world);

describe("a payment with an unclear outcome", () => {
  it.each([409, 502, 503, 504])("is sent again when the answer is %i", async (status) => {
    const seller = keep(await startSeller({ onPaid: firstAnswer(2, status) }));
    const init = { method: "POST", body: "order" };
    const response = await createFetch()(seller.url, init);
    expect(response.status).toBe(200);
    expect(receiptOf(response)?.success).toBe(true);
    expectSamePayment(seller.paid, 3);
    expect(waits).toEqual([500, 1000]);
    expect(world.states()).toEqual(["booked", "signed", "sent", "sent", "sent", "settled"]);
  });

  it("is not sent again when the caller's key belongs to another payment, which is a refusal", async () => {
    const onPaid: OnPaid = (_, response) => {
      response.writeHead(409, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: "idempotency_key_in_use", message: "Another has it" }));
      return true;
    };
    const seller = keep(await startSeller({ onPaid }));
    const headers = { "Idempotency-Key": "mine" };
    const response = await createFetch()(seller.url, { headers });
    expect(response.status).toBe(409);
    expect(await response.json()).toMatchObject({ error: "idempotency_key_in_use" });
    expect(seller.paid).toHaveLength(1);
    expect(waits).toEqual([]);
    expect(world.states()).toEqual(["booked", "signed", "sent", "rejected"]);
  });

  it.each([
    [504, "handler_timeout"],
    [500, "response_too_large"],
  ])("is not sent again when a %i reports that nothing was charged", async (status, error) => {
    const onPaid: OnPaid = (_, response) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify({ error, message: "Nothing was charged", charged: false }));
      return true;
    };
    const seller = keep(await startSeller({ onPaid }));
    const response = await createFetch()(seller.url);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error });
    expect(paymentOf(response)).toMatchObject({ state: "rejected", reason: error });
    expect(seller.paid).toHaveLength(1);
    expect(waits).toEqual([]);
    expect(world.states()).toEqual(["booked", "signed", "sent", "rejected"]);
  });

  it("stays unclear when a report of no charge follows an attempt without an answer", async () => {
    const onPaid: OnPaid = (_, response, count) => {
      if (count === 1) response.destroy();
      else response.writeHead(504).end('{"error":"handler_timeout","charged":false}');
      return true;
    };
    const seller = keep(await startSeller({ onPaid }));
    const error = await unclearOf(createFetch()(seller.url));
    expect(error).toMatchObject({ status: 504, reason: "handler_timeout" });
    expectSamePayment(seller.paid, 2);
  });

  it.each([
    ["a proxy's", "<html>504 Gateway Time-out</html>"],
    ["a charged one", '{"error":"handler_timeout","charged":true}'],
    ["without a word on charges", '{"error":"handler_timeout"}'],
    ["malformed", '{"error":"handler_timeout","charged":"no"}'],
  ])("is sent again when a 504 is %s", async (_case, body) => {
    const onPaid: OnPaid = (_, response, count) => {
      if (count > 1) return false;
      response.writeHead(504).end(body);
      return true;
    };
    const seller = keep(await startSeller({ onPaid }));
    expect((await createFetch()(seller.url)).status).toBe(200);
    expectSamePayment(seller.paid, 2);
  });

  it.each([
    ["the payer is rate limited", 429, "payer_limited"],
    ["the operator has stopped new payments", 503, "payments_stopped"],
  ])(
    "is not sent again when %s: no money moved, and a retry time is named",
    async (_, status, error) => {
      const onPaid: OnPaid = (_payment, response) => {
        response.writeHead(status, { "content-type": "application/json", "retry-after": "40" });
        response.end(JSON.stringify({ error, message: "Wait", charged: false }));
        return true;
      };
      const seller = keep(await startSeller({ onPaid }));
      const response = await createFetch()(seller.url);
      expect([response.status, response.headers.get("retry-after")]).toEqual([status, "40"]);
      expect(paymentOf(response)).toMatchObject({ state: "rejected", reason: error });
      expect(seller.paid).toHaveLength(1);
      expect(waits).toEqual([]);
      expect(world.states()).toEqual(["booked", "signed", "sent", "rejected"]);
    },
  );

  it.each([
    ["with its offer in the body", false],
    ["with its offer in a header", true],
  ])(
    "is not sent again when a 402 says that it has charged, %s and without a receipt: money may have moved",
    async (_where, hasHeader) => {
      const onPaid: OnPaid = (_, response) => {
        const offer = {
          x402Version: 2,
          error: "payment_used_up",
          resource: { url: "" },
          accepts: [],
        };
        const header = Buffer.from(JSON.stringify(offer)).toString("base64");
        response.writeHead(402, hasHeader ? { "payment-required": header } : {});
        response.end(JSON.stringify({ error: "payment_used_up", charged: true }));
        return true;
      };
      const seller = keep(await startSeller({ onPaid }));
      const response = await createFetch()(seller.url);
      expect(response.status).toBe(402);
      expect(await response.json()).toMatchObject({ charged: true });
      expect(paymentOf(response)).toMatchObject({ state: "unclear" });
      expect(seller.paid).toHaveLength(1);
      expect(world.states()).toEqual(["booked", "signed", "sent", "unclear"]);
    },
  );

  it("is sent again when the connection breaks before an answer", async () => {
    const onPaid: OnPaid = (_, response, count) => {
      if (count > 1) return false;
      response.destroy();
      return true;
    };
    const seller = keep(await startSeller({ onPaid }));
    expect((await createFetch()(seller.url)).status).toBe(200);
    expectSamePayment(seller.paid, 2);
  });

  it("is sent again when no answer starts in time, and not for a slow body", async () => {
    const onPaid: OnPaid = (paid, response, count) => {
      if (count === 1) return true;
      if (count > 2) return false;
      response.writeHead(200);
      response.write("slow ");
      setTimeout(() => response.end("body"), 2_000);
      return paid !== undefined;
    };
    const seller = keep(await startSeller({ onPaid }));
    const response = await createFetch({ attemptTimeoutMs: 1_000 })(seller.url);
    expect(await response.text()).toBe("slow body");
    expectSamePayment(seller.paid, 2);
  });

  it.each([402, 409])("is sent again when the error body of a %i never ends", async (status) => {
    const onPaid: OnPaid = (_, response, count) => {
      if (count > 1) return false;
      response.writeHead(status).write('{"error":');
      return true;
    };
    const seller = keep(await startSeller({ onPaid }));
    const response = await createFetch({ attemptTimeoutMs: 1_000 })(seller.url);
    expect(response.status).toBe(200);
    expectSamePayment(seller.paid, 2);
  });

  it("is sent again after the seller's retry time, in seconds or as a date", async () => {
    const now = Date.parse("2026-01-01T00:00:00Z");
    const onPaid: OnPaid = (_, response, count) => {
      if (count > 2) return false;
      const date = new Date(now + 7000).toUTCString();
      response.writeHead(503, { "Retry-After": count === 1 ? "3" : date }).end();
      return true;
    };
    const seller = keep(await startSeller({ onPaid }));
    await createFetch({ now: () => now })(seller.url);
    expect(waits).toEqual([3000, 7000]);
  });
});

describe("the backoff between attempts", () => {
  it("waits by default, and ends when the caller aborts", async () => {
    const onPaid = firstAnswer(1, 503, { "Retry-After": "0" });
    const quick = keep(await startSeller({ onPaid }));
    expect((await createFetch({ wait: undefined })(quick.url)).status).toBe(200);

    const slow = keep(await startSeller({ onPaid: firstAnswer(9, 503, { "Retry-After": "25" }) }));
    const controller = new AbortController();
    const call = createFetch({ wait: undefined })(slow.url, { signal: controller.signal });
    await expect.poll(() => slow.paid.length).toBe(1);
    controller.abort(new Error("Enough"));
    await expect(call).rejects.toMatchObject({
      code: "outcome_unclear",
      cause: { message: "Enough" },
    });
    expect(slow.paid).toHaveLength(1);
  });
});
