import { inspect } from "node:util";
import { encodeReceipt, plasma } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { OutcomeUnclearError, paymentOf, receiptOf, type SignedPayment } from "../index.ts";
import { listen } from "../testing/listen.ts";
import { type PaidRequest, reject, requirements, startSeller } from "../testing/seller.ts";
import { useWorld } from "../testing/world.ts";

const world = useWorld();
const { keep, createFetch, waits } = world;

type OnPaid = NonNullable<NonNullable<Parameters<typeof startSeller>[0]>["onPaid"]>;

const hash = `0x${"cd".repeat(32)}`;
const pendingReceipt = encodeReceipt(
  { success: false, errorReason: "settlement_pending", transaction: hash, network: plasma },
  2,
);

/** Answers with a status this many times, then sells. */
function firstAnswer(times: number, status: number, headers: Record<string, string> = {}): OnPaid {
  return (_, response, count) => {
    if (count > times) return false;
    response.writeHead(status, headers).end();
    return true;
  };
}

async function unclearOf(call: Promise<Response>): Promise<OutcomeUnclearError> {
  const error = await call.then(
    ({ status }) => new Error(`It was answered ${status}`),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof OutcomeUnclearError)) throw error;
  expect(error.code).toBe("outcome_unclear");
  expect(error.moneyMayHaveMoved).toBe(true);
  expect(world.account().signatures()).toBe(1);
  return error;
}

/** All attempts carried the same payment with the same key. */
function expectSamePayment(paid: readonly PaidRequest[], attempts: number): void {
  expect(paid).toHaveLength(attempts);
  const sent = paid.map(({ request, idempotencyKey }) => [
    request.headers["payment-signature"],
    idempotencyKey,
    request.body,
  ]);
  expect(new Set(sent.map((each) => JSON.stringify(each))).size).toBe(1);
  expect(world.account().signatures()).toBe(1);
}

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
  ])("is sent again when a 504 is %s", async (_what, body) => {
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

describe("a payment that stays unclear", () => {
  it("throws the data for a resumption, after a bounded number of attempts", async () => {
    const headers = { "Retry-After": "2", "PAYMENT-RESPONSE": pendingReceipt };
    const seller = keep(await startSeller({ onPaid: firstAnswer(99, 503, headers) }));
    const error = await unclearOf(createFetch({ maxAttempts: 3 })(`${seller.url}/weather`));
    expectSamePayment(seller.paid, 3);
    expect(error).toMatchObject({ status: 503, retryAfterSeconds: 2, transaction: hash });
    expect(error.payment.request).toEqual({
      method: "GET",
      url: `${seller.url}/weather`,
      bodyHash: "",
    });
    expect(error.payment.terms.amount).toBe("1000");
    expect(world.states().at(-1)).toBe("unclear");
  });

  it("waits within its time limit and the validity of the authorization", async () => {
    const patient = keep(
      await startSeller({ onPaid: firstAnswer(99, 503, { "Retry-After": "31" }) }),
    );
    const error = await unclearOf(createFetch()(patient.url));
    expect(error.retryAfterSeconds).toBe(31);
    expect(patient.paid).toHaveLength(1);

    const short = keep(
      await startSeller({
        accepts: () => [requirements({ maxTimeoutSeconds: 2 })],
        onPaid: firstAnswer(99, 503, { "Retry-After": "2" }),
      }),
    );
    await expect(createFetch()(short.url)).rejects.toBeInstanceOf(OutcomeUnclearError);
    expect(short.paid).toHaveLength(1);
    expect(waits).toEqual([]);
  });

  it("is still unclear when the seller then rejects the payment, which it may have settled before", async () => {
    const onPaid: OnPaid = (paid, response, count) => {
      if (count === 1) response.destroy();
      else reject(response, paid, "invalid_exact_evm_nonce_already_used");
      return true;
    };
    const seller = keep(await startSeller({ onPaid }));
    const error = await unclearOf(createFetch()(seller.url));
    expect(error).toMatchObject({ status: 402, reason: "invalid_exact_evm_nonce_already_used" });
    expectSamePayment(seller.paid, 2);
  });

  it("keeps its amount booked", async () => {
    const onPaid = firstAnswer(1, 503);
    const accepts = () => [requirements({ amount: "100000" })];
    const seller = keep(await startSeller({ onPaid, accepts }));
    const pay = createFetch({ budget: { perDay: "$0.10" }, maxAttempts: 1 });
    await unclearOf(pay(seller.url));
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });
  });

  it("hides the signature from printing and serialization of the error", async () => {
    const seller = keep(await startSeller({ onPaid: firstAnswer(99, 503) }));
    const error = await unclearOf(createFetch({ maxAttempts: 1 })(`${seller.url}/?token=s3cret`));
    const shown = `${inspect(error, { depth: 9 })} ${JSON.stringify(error)} ${error.stack}`;
    expect(shown).not.toContain(error.payment.header.value);
    expect(shown).not.toContain(error.payment.idempotencyKey);
    expect(shown).not.toContain("s3cret");
    for (const key in error) expect(key).not.toBe("payment");
  });

  it("is thrown after an abort too, with the reason as its cause", async () => {
    const controller = new AbortController();
    const onPaid: OnPaid = () => {
      controller.abort(new Error("Enough"));
      return true;
    };
    const seller = keep(await startSeller({ onPaid }));
    const error = await unclearOf(createFetch()(seller.url, { signal: controller.signal }));
    expect(error.cause).toMatchObject({ message: "Enough" });
    expect(error.payment.terms.amount).toBe("1000");
    expect(seller.paid).toHaveLength(1);
  });
});

describe("an answer without proof of settlement", () => {
  it.each([200, 404, 500])("is returned unchanged: %i", async (status) => {
    const onPaid: OnPaid = (_, response) => {
      response.writeHead(status).end("text");
      return true;
    };
    const seller = keep(await startSeller({ onPaid }));
    const response = await createFetch()(seller.url);
    expect(response.status).toBe(status);
    expect(await response.text()).toBe("text");
    expect(paymentOf(response)?.state).toBe("unclear");
    expect(receiptOf(response)).toBeUndefined();
    expect(seller.paid).toHaveLength(1);
  });

  it("may carry an unreadable receipt", async () => {
    const onPaid: OnPaid = (_, response) => {
      response.writeHead(200, { "PAYMENT-RESPONSE": "%%%" }).end();
      return true;
    };
    const seller = keep(await startSeller({ onPaid }));
    expect(paymentOf(await createFetch()(seller.url))?.state).toBe("unclear");
  });
});

describe("a seller that is unreachable for the payment", () => {
  it("has not received it: the amount is freed, and no money can move", async () => {
    const accepts = () => [requirements({ amount: "100000" })];
    const seller = keep(await startSeller({ accepts }));
    const closed = await closedPort();
    let isDown = true;
    const pay = createFetch({
      budget: { perDay: "$0.10" },
      maxAttempts: 2,
      fetch: (input, init) => {
        const isPayment = new Headers(init?.headers).has("PAYMENT-SIGNATURE");
        return fetch(isPayment && isDown ? closed : input, init);
      },
    });
    await expect(pay(seller.url)).rejects.toMatchObject({
      code: "unreachable",
      moneyMayHaveMoved: false,
    });
    expect(world.states()).toEqual(["booked", "signed", "sent", "sent", "released"]);
    isDown = false;
    expect((await pay(seller.url)).status).toBe(200);
  });
});

describe("resuming a payment", () => {
  async function leaveUnclear(): Promise<{
    url: string;
    payment: SignedPayment;
    paid: PaidRequest[];
  }> {
    const seller = keep(await startSeller({ onPaid: firstAnswer(1, 503) }));
    const url = `${seller.url}/order`;
    const call = createFetch({ maxAttempts: 1 })(url, { method: "POST", body: "two" });
    const { payment } = await unclearOf(call);
    return { url, paid: seller.paid, payment };
  }

  it("sends the same payment again, also from another process, and signs nothing", async () => {
    const { url, payment, paid } = await leaveUnclear();
    const kept: SignedPayment = JSON.parse(JSON.stringify(payment));
    const response = await createFetch().resume(kept, url, { method: "POST", body: "two" });
    expect(response.status).toBe(200);
    expect(paymentOf(response)?.state).toBe("settled");
    expectSamePayment(paid, 2);
  });

  it("asks once when the authorization has expired, since it may have been settled before", async () => {
    const { url, payment, paid } = await leaveUnclear();
    const now = () => (payment.terms.validBefore + 1000) * 1000;
    const response = await createFetch({ now }).resume(payment, url, {
      method: "POST",
      body: "two",
    });
    expect(response.status).toBe(200);
    expect(paid).toHaveLength(2);
  });

  it("stays unclear when the seller is unreachable", async () => {
    const { url, payment } = await leaveUnclear();
    const closed = await closedPort();
    const pay = createFetch({ maxAttempts: 1, fetch: (_, init) => fetch(closed, init) });
    await unclearOf(pay.resume(payment, url, { method: "POST", body: "two" }));
  });

  it("is refused for another request, and for a malformed payment", async () => {
    const { url, payment, paid } = await leaveUnclear();
    const { resume } = createFetch();
    const mismatch = { code: "request_mismatch" };
    const post = { method: "POST", body: "two" };
    await expect(resume(payment, `${url}/other`, post)).rejects.toMatchObject(mismatch);
    await expect(resume(payment, url, { ...post, body: "three" })).rejects.toMatchObject(mismatch);
    await expect(resume(payment, url, { ...post, method: "PUT" })).rejects.toMatchObject(mismatch);
    const stolen = { ...payment, sendTo: "https://other.example/order" };
    await expect(resume(stolen, url, post)).rejects.toMatchObject(mismatch);
    const broken = { ...payment, idempotencyKey: JSON.parse("7") };
    await expect(resume(broken, url, post)).rejects.toMatchObject(mismatch);
    expect(paid).toHaveLength(1);
  });
});

/** A URL without a listener. */
async function closedPort(): Promise<string> {
  const server = await listen((_, response) => void response.end());
  await server.close();
  return server.url;
}
