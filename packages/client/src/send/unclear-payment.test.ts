import { inspect } from "node:util";
import { encodeReceipt, plasma } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { OutcomeUnclearError, paymentOf, receiptOf, type SignedPayment } from "../index.ts";
import { listen } from "../testing/listen.ts";
import { type PaidRequest, reject, requirements, startSeller } from "../testing/seller.ts";
import { createExpectations, firstAnswer, type OnPaid } from "../testing/unclear-payments.ts";
import { useWorld } from "../testing/world.ts";

const world = useWorld();
const { keep, createFetch, waits } = world;

const hash = `0x${"cd".repeat(32)}`;
const pendingReceipt = encodeReceipt(
  { success: false, errorReason: "settlement_pending", transaction: hash, network: plasma },
  2,
);

const { unclearOf, expectSamePayment } = createExpectations(world);

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
