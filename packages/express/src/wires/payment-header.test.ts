import { afterEach, describe, expect, it } from "vitest";
import { createBuyer } from "../testing/buyer.ts";
import { sendTarget } from "../testing/send-target.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";

const opened: Shop[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

/** A shop that shows its handler's view of a header, and may have middleware before its gate. */
async function open(before?: Parameters<typeof openShop>[0]["before"]) {
  const shop = await openShop({
    routes: { "GET /paid": { accepts: option() } },
    before,
    serve(app) {
      app.get("/paid", (request, response) => {
        const names = Object.keys(request.headersDistinct);
        response.json({ names, raw: request.rawHeaders });
      });
    },
  });
  opened.push(shop);
  return shop;
}

describe("a payment beside a header with the name of a prototype", () => {
  it.each(["__proto__", "constructor", "toString"])("is taken: %s", async (name) => {
    const shop = await open();
    const { headers } = await createBuyer().payFor(`${shop.url}/paid`);
    const sent = { ...headers, [name]: "1", "X-Kept": "2" };
    const { status, answer } = await sendTarget(shop, "/paid", { headers: sent });
    expect(shop.errors).toEqual([]);
    expect(status).toBe(200);
    expect(answer).not.toMatch(/payment-signature/i);
    expect(answer).toContain('"x-kept"');
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it("is refused when it comes twice, as any other", async () => {
    const shop = await open();
    const { headers } = await createBuyer().payFor(`${shop.url}/paid`);
    const [value = ""] = Object.values(headers);
    const sent = {
      "PAYMENT-SIGNATURE": value,
      "payment-signature": value,
      ["__proto__"]: "1",
    };
    const { status } = await sendTarget(shop, "/paid", { headers: sent });
    expect(status).toBe(400);
  });
});

describe("a payment whose request cannot be prepared for its handler", () => {
  it("is given back: the same payment buys once the fault is gone", async () => {
    let isSealed = true;
    const shop = await open((app) => {
      app.use((request, _response, next) => {
        if (isSealed) Object.defineProperty(request, "payment", { value: undefined });
        next();
      });
    });
    const { headers } = await createBuyer().payFor(`${shop.url}/paid`);
    expect((await fetch(`${shop.url}/paid`, { headers })).status).toBe(500);
    isSealed = false;
    expect((await fetch(`${shop.url}/paid`, { headers })).status).toBe(200);
    expect(shop.facilitator.settled).toHaveLength(1);
  });
});
