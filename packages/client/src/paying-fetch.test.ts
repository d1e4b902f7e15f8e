import { eip3009Abi, plasma, plasmaUsdt0, transferTypedData } from "@coinslot/protocol";
import { recoverTypedDataAddress } from "viem";
import { describe, expect, it } from "vitest";
import { type PaymentEvent, paymentOf, receiptOf } from "./index.ts";
import { executePayment } from "./testing/execute-payment.ts";
import { listen } from "./testing/listen.ts";
import {
  answer402,
  type PaidRequest,
  payTo,
  reject,
  requirements,
  sell,
  startSeller,
} from "./testing/seller.ts";
import { useWorld } from "./testing/world.ts";

const world = useWorld();
const { keep, createFetch } = world;

function signerOf({ authorization, payload }: PaidRequest) {
  return recoverTypedDataAddress({
    ...transferTypedData({
      authorization,
      network: plasma,
      asset: plasmaUsdt0.address,
      domain: { name: "USDT0", version: "1" },
    }),
    signature: payload.payload.signature,
  });
}

describe("a free request", () => {
  it("is passed to fetch unchanged", async () => {
    const server = keep(
      await listen((request, response) => {
        response.setHeader("X-Seen", `${request.method} ${request.headers["x-mine"]}`);
        response.end(request.body);
      }),
    );
    const init = { method: "POST", headers: { "X-Mine": "yes" }, body: "hello" };
    const response = await createFetch()(server.url, init);
    expect(response).toBeInstanceOf(Response);
    expect(response.headers.get("X-Seen")).toBe("POST yes");
    expect(await response.text()).toBe("hello");
    expect(paymentOf(response)).toBeUndefined();
  });

  it("gets a 402 without an x402 offer unchanged, with its body", async () => {
    const server = keep(
      await listen((_request, response) => {
        response.writeHead(402, { "Content-Type": "application/json" }).end('{"pay":"by card"}');
      }),
    );
    const response = await createFetch()(server.url);
    expect(response.status).toBe(402);
    expect(await response.json()).toEqual({ pay: "by card" });
  });

  it("gets a 402 with a long body whole", async () => {
    const text = "x".repeat(1_000_000);
    const server = keep(await listen((_, response) => void response.writeHead(402).end(text)));
    expect(await (await createFetch()(server.url)).text()).toBe(text);
  });

  it("is not paid a second time when it has a payment of its own", async () => {
    const seller = keep(
      await startSeller({
        onPaid: (paid, response) => {
          reject(response, paid, "invalid_payload");
          return true;
        },
      }),
    );
    await createFetch()(seller.url);
    const header = seller.paid[0]?.request.headers["payment-signature"];
    const response = await createFetch()(seller.url, {
      headers: { "PAYMENT-SIGNATURE": String(header) },
    });
    expect(response.status).toBe(402);
    expect(world.account().signatures()).toBe(1);
  });
});

describe.each([1, 2] as const)("an offer in version %i", (version) => {
  it("is paid with one signature, and the answer has its receipt", async () => {
    const seller = keep(await startSeller({ version }));
    const now = 1_700_000_000_000;
    const response = await createFetch({ now: () => now })(`${seller.url}/weather`);

    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ forecast: "sun" });
    expect(receiptOf(response)).toMatchObject({ success: true, network: plasma });
    expect(paymentOf(response)?.state).toBe("settled");
    expect(world.account().signatures()).toBe(1);
    expect(world.states()).toEqual(["booked", "signed", "sent", "settled"]);

    const [paid] = seller.paid;
    expect(seller.paid).toHaveLength(1);
    expect(paid?.payload.x402Version).toBe(version);
    expect(paid?.authorization).toMatchObject({
      from: world.account().address.toLowerCase(),
      to: payTo,
      value: 1000n,
      validAfter: 0n,
      validBefore: BigInt(now / 1000 + 300),
    });
    expect(paid && (await signerOf(paid))).toBe(world.account().address);
  });

  it("is paid with an authorization that the token executes", async () => {
    const { client, token } = world.devnet();
    const seller = keep(
      await startSeller({
        version,
        onPaid: async (paid, response) => {
          const hash = await executePayment(world.devnet(), paid);
          sell(response, paid, hash);
          return true;
        },
      }),
    );
    const balance = () =>
      client.readContract({
        address: token,
        abi: eip3009Abi,
        functionName: "balanceOf",
        args: [payTo],
      });
    const before = await balance();
    expect((await createFetch()(seller.url)).status).toBe(200);
    expect((await balance()) - before).toBe(1000n);
  });

  it("is paid by POST with the same body, of any body type", async () => {
    const seller = keep(await startSeller({ version }));
    const form = new FormData();
    form.set("city", "Lisbon");
    const stream = new Blob(["a stream"]).stream();
    const pay = createFetch();
    await pay(seller.url, { method: "POST", body: "text" });
    await pay(new Request(seller.url, { method: "PUT", body: new Uint8Array([65, 66]) }));
    await pay(seller.url, { method: "POST", body: stream, duplex: "half" });
    await pay(seller.url, { method: "POST", body: form });

    const first = seller.unpaid.map(({ method, body }) => ({ method, body }));
    const second = seller.paid.map(({ request: { method, body } }) => ({ method, body }));
    expect(second).toEqual(first);
    expect(second.slice(0, 3)).toEqual([
      { method: "POST", body: "text" },
      { method: "PUT", body: "AB" },
      { method: "POST", body: "a stream" },
    ]);
    expect(second[3]?.body).toContain("Lisbon");
    expect(seller.paid[3]?.request.headers["content-type"]).toBe(
      seller.unpaid[3]?.headers["content-type"],
    );
  });

  it("comes back as its 402 when it is rejected, with the reason, and is not paid again", async () => {
    const seller = keep(
      await startSeller({
        version,
        onPaid: (paid, response) => {
          reject(response, paid, "invalid_exact_evm_insufficient_balance");
          return true;
        },
      }),
    );
    const response = await createFetch()(seller.url);
    expect(response.status).toBe(402);
    expect(paymentOf(response)).toMatchObject({
      state: "rejected",
      reason: "invalid_exact_evm_insufficient_balance",
    });
    expect(receiptOf(response)?.success).toBe(false);
    expect(await response.json()).toMatchObject({
      error: "invalid_exact_evm_insufficient_balance",
    });
    expect(world.account().signatures()).toBe(1);
    expect(world.states()).toEqual(["booked", "signed", "sent", "rejected"]);
  });

  it("is not paid again when the seller then asks for more, or for another recipient", async () => {
    const seller = keep(
      await startSeller({
        version,
        onPaid: ({ request }, response) => {
          const accepts = [
            requirements({ amount: "2000", payTo: "0x00000000000000000000000000000000000beef2" }),
          ];
          answer402(response, version, { resource: `http://${request.headers.host}/`, accepts });
          return true;
        },
      }),
    );
    const response = await createFetch()(seller.url);
    expect(response.status).toBe(402);
    expect(paymentOf(response)?.state).toBe("rejected");
    expect(world.account().signatures()).toBe(1);
    expect(seller.paid).toHaveLength(1);
  });
});

describe("the idempotency key", () => {
  it("is secret, random for each payment, and not sent before one", async () => {
    const seller = keep(await startSeller());
    const pay = createFetch();
    await pay(seller.url);
    await pay(seller.url);
    const [first, second] = seller.paid.map(({ idempotencyKey }) => idempotencyKey);
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    expect(second).toMatch(/^[0-9a-f]{64}$/);
    expect(second).not.toBe(first);
    expect(seller.unpaid.map(({ headers }) => headers["idempotency-key"])).toEqual([
      undefined,
      undefined,
    ]);
  });

  it("is the caller's where the request has one", async () => {
    const seller = keep(await startSeller());
    await createFetch()(seller.url, { headers: { "Idempotency-Key": "mine" } });
    expect(seller.paid[0]?.idempotencyKey).toBe("mine");
  });
});

describe("the validity of an authorization", () => {
  it("is capped, at any timeout of the seller", async () => {
    const accepts = () => [requirements({ maxTimeoutSeconds: 31_536_000 })];
    const seller = keep(await startSeller({ accepts }));
    const now = () => 1_700_000_000_999;
    await createFetch({ now })(seller.url);
    await createFetch({ now, maxValiditySeconds: 60 })(seller.url);
    const until = seller.paid.map(({ authorization }) => authorization.validBefore);
    expect(until).toEqual([1_700_000_600n, 1_700_000_060n]);
  });
});

describe("onPayment", () => {
  const throwAtOnce = () => {
    throw new Error("The log is full");
  };
  it.each([
    ["at once", throwAtOnce],
    ["later", async () => throwAtOnce()],
  ])(
    "receives terms and receipt without a signature, and cannot break a payment %s",
    async (_when, fail) => {
      const seller = keep(await startSeller());
      const events: PaymentEvent[] = [];
      const warnings: Error[] = [];
      const hear = (warning: Error) => warnings.push(warning);
      process.on("warning", hear);
      try {
        const response = await createFetch({
          onPayment: (event) => {
            events.push(event);
            return fail();
          },
        })(seller.url);
        expect(response.status).toBe(200);
        await expect.poll(() => warnings.length).toBeGreaterThan(0);
      } finally {
        process.off("warning", hear);
      }
      const { hostname, port } = new URL(seller.url);
      expect(events[0]).toMatchObject({ state: "booked", host: `${hostname}:${port}` });
      expect(events[0]?.terms).toMatchObject({ amount: "1000", payTo, network: plasma });
      expect(events.at(-1)?.receipt?.success).toBe(true);
      const signature = seller.paid[0]?.payload.payload.signature ?? "none";
      expect(JSON.stringify(events)).not.toContain(signature.slice(2));
    },
  );
});
