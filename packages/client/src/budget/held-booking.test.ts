import { describe, expect, it } from "vitest";
import { OutcomeUnclearError, type SignedPayment } from "../index.ts";
import { executePayment } from "../testing/execute-payment.ts";
import { requirements, startSeller } from "../testing/seller.ts";
import { useWorld } from "../testing/world.ts";

const world = useWorld();
const { keep, createFetch } = world;

/** Room for one payment of ten cents. */
const budget = { perDay: "$0.10" };

/** A seller of one thing for ten cents, which pays attention to payments only once it is `open`. */
async function startDearSeller(isOpen = () => true) {
  return keep(
    await startSeller({
      accepts: () => [requirements({ amount: "100000" })],
      onPaid: async (_paid, response) => {
        if (isOpen()) return false;
        response.writeHead(503, { "retry-after": "999" }).end();
        return true;
      },
    }),
  );
}

describe("a signed payment", () => {
  it("stays booked when its seller is unreachable, since it was already handed over to be kept", async () => {
    const seller = await startDearSeller();
    const kept: SignedPayment[] = [];
    const pay = createFetch({
      budget,
      beforeSend: (payment) => void kept.push(payment),
      fetch: async (input, init) => {
        if (kept.length === 1 && init?.method === "GET" && carriesPayment(init)) {
          throw Object.assign(new Error("refused"), { code: "ECONNREFUSED", syscall: "connect" });
        }
        return fetch(input, init);
      },
    });
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "unreachable" });
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });
    expect(world.states()).not.toContain("released");
    expect(kept).toHaveLength(1);
  });

  it("stays booked when its caller aborts after it was handed over to be kept", async () => {
    const seller = await startDearSeller();
    const aborted = new AbortController();
    const pay = createFetch({ budget, beforeSend: () => aborted.abort(new Error("enough")) });
    await expect(pay(seller.url, { signal: aborted.signal })).rejects.toThrow("enough");
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });
    expect(seller.paid).toHaveLength(0);
  });

  it("is booked again by a budget that sends it without having signed it", async () => {
    let isOpen = false;
    const seller = await startDearSeller(() => isOpen);
    const error = await createFetch({ budget })(seller.url).catch((thrown: unknown) => thrown);
    if (!(error instanceof OutcomeUnclearError)) throw error;
    isOpen = true;
    const other = createFetch({ budget });
    expect((await other.resume(error.payment, seller.url)).status).toBe(200);
    await expect(other(seller.url)).rejects.toMatchObject({ code: "over_budget" });
  });

  it("is not sent by a budget without room for it or limits for its token", async () => {
    const seller = await startDearSeller(() => false);
    const error = await createFetch({ budget })(seller.url).catch((thrown: unknown) => thrown);
    if (!(error instanceof OutcomeUnclearError)) throw error;
    const sent = seller.paid.length;
    const small = createFetch({ budget: { perDay: "$0.09" } });
    await expect(small.resume(error.payment, seller.url)).rejects.toMatchObject({
      code: "over_budget",
    });
    const other = createFetch({ budget: { assets: [] } });
    await expect(other.resume(error.payment, seller.url)).rejects.toMatchObject({
      code: "unknown_asset",
    });
    expect(seller.paid).toHaveLength(sent);
  });

  it("is booked once, for any number of attempts", async () => {
    const seller = await startDearSeller(() => false);
    const pay = createFetch({ budget });
    const error = await pay(seller.url).catch((thrown: unknown) => thrown);
    if (!(error instanceof OutcomeUnclearError)) throw error;
    for (let count = 0; count < 2; count += 1) {
      await expect(pay.resume(error.payment, seller.url)).rejects.toMatchObject({
        code: "outcome_unclear",
      });
    }
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });
  });

  it("needs no room once the chain shows its transfer", async () => {
    let isOpen = false;
    const seller = await startDearSeller(() => isOpen);
    const error = await createFetch({ budget })(seller.url).catch((thrown: unknown) => thrown);
    if (!(error instanceof OutcomeUnclearError)) throw error;
    const [paid] = seller.paid;
    if (paid === undefined) throw new Error("The seller got no payment");
    await executePayment(world.devnet(), paid);
    isOpen = true;
    const small = createFetch({ budget: { perDay: "$0.09" } });
    expect((await small.resume(error.payment, seller.url)).status).toBe(200);
  });
});

function carriesPayment(init: RequestInit): boolean {
  const headers = new Headers(init.headers);
  return headers.has("x-payment") || headers.has("payment-signature");
}
