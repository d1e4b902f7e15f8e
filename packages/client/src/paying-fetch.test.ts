import { startDevnet } from "@coinslot/devnet";
import {
  eip3009Abi,
  encodePaymentRequired,
  plasma,
  plasmaUsdt0,
  stable,
  stableUsdt0,
  transferTypedData,
} from "@coinslot/protocol";
import { recoverTypedDataAddress } from "viem";
import { describe, expect, it } from "vitest";
import { createPayingFetch, type PaymentEvent, paymentOf, receiptOf } from "./index.ts";
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

describe("a request that needs no payment", () => {
  it("is what fetch makes of it", async () => {
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

  it("gets a 402 that is no offer of x402 as it is, with its body", async () => {
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

  it("that brings a payment of its own is not paid a second time", async () => {
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
  it("is paid with one signature, and the answer comes with its receipt", async () => {
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

  it("is paid by POST with the same body, whatever it was made of", async () => {
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

  it("that is rejected comes back as its 402, with the reason, and is not paid again", async () => {
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

  it("is not paid again when the seller then asks for more, or for somebody else", async () => {
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

describe("version 1", () => {
  it("is paid where an offer says no more than the specification's table of fields", async () => {
    const seller = keep(
      await startSeller({
        onUnpaid: (request, response) => {
          const entry = {
            scheme: "exact",
            network: plasma,
            maxAmountRequired: "1000",
            asset: plasmaUsdt0.address,
            resource: `http://${request.headers.host}${request.url}`,
            payTo,
          };
          response.writeHead(402, { "Content-Type": "application/json" });
          response.end(JSON.stringify({ x402Version: 1, accepts: [entry] }));
          return true;
        },
      }),
    );
    const response = await createFetch()(`${seller.url}/weather`);
    expect(response.status).toBe(200);
    expect(seller.paid[0]?.request.headers).toHaveProperty("x-payment");
  });

  it("repeats a network's old name", async () => {
    const stableNet = await startDevnet({ chainId: 988 });
    try {
      await stableNet.mint({ to: world.account().address, amount: 5000n });
      const seller = keep(
        await startSeller({
          onUnpaid: (request, response) => {
            const entry = {
              ...requirements(),
              network: "stable",
              maxAmountRequired: "1000",
              asset: stableUsdt0.address,
              resource: `http://${request.headers.host}/`,
            };
            response.writeHead(402).end(JSON.stringify({ x402Version: 1, accepts: [entry] }));
            return true;
          },
        }),
      );
      const response = await createFetch({ rpcUrls: { [stable]: stableNet.rpcUrl } })(seller.url);
      expect(response.status).toBe(200);
      expect(seller.paid[0]?.payload).toMatchObject({ x402Version: 1, network: "stable" });
    } finally {
      await stableNet.stop();
    }
  });
});

describe("version 2", () => {
  it("comes before version 1 when an answer offers both", async () => {
    const seller = keep(
      await startSeller({
        onUnpaid: (request, response) => {
          const url = `http://${request.headers.host}/`;
          const v1 = { ...requirements(), maxAmountRequired: "1000", resource: url };
          const offer = { x402Version: 2 as const, resource: { url }, accepts: [requirements()] };
          response.writeHead(402, { "PAYMENT-REQUIRED": encodePaymentRequired(offer) });
          response.end(JSON.stringify({ x402Version: 1, accepts: [v1] }));
          return true;
        },
      }),
    );
    await createFetch()(seller.url);
    expect(seller.paid[0]?.payload.x402Version).toBe(2);
  });

  it("repeats the accepted entry, the resource and the extensions as they came", async () => {
    const accepted = {
      ...requirements(),
      "x-unknown": { deep: [1, null] },
      extra: { version: "1", name: "USDT0", mood: "good" },
    };
    const extensions = { bazaar: { info: { a: 1 } }, "payment-identifier": { info: {} } };
    const seller = keep(await startSeller({ accepts: () => [accepted], offer: { extensions } }));
    await createFetch()(`${seller.url}/weather`);
    const header = String(seller.paid[0]?.request.headers["payment-signature"]);
    const message: unknown = JSON.parse(Buffer.from(header, "base64").toString());
    expect(message).toMatchObject({
      accepted,
      resource: { url: `${seller.url}/weather` },
      extensions: {
        bazaar: { info: { a: 1 } },
        "payment-identifier": { info: { id: seller.paid[0]?.idempotencyKey } },
      },
    });
  });

  it("is read from the body when its header cannot be", async () => {
    const seller = keep(
      await startSeller({
        onUnpaid: (request, response) => {
          response.setHeader("PAYMENT-REQUIRED", "%%%");
          const resource = `http://${request.headers.host}/`;
          answer402(response, 1, { resource, accepts: [requirements()] });
          return true;
        },
      }),
    );
    await createFetch()(seller.url);
    expect(seller.paid[0]?.payload.x402Version).toBe(1);
  });
});

describe("the idempotency key", () => {
  it("is secret, random for each payment, and not told before one", async () => {
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

  it("is the caller's where it brings one", async () => {
    const seller = keep(await startSeller());
    await createFetch()(seller.url, { headers: { "Idempotency-Key": "mine" } });
    expect(seller.paid[0]?.idempotencyKey).toBe("mine");
  });
});

describe("the validity of an authorization", () => {
  it("is capped, whatever the seller asks for", async () => {
    const accepts = () => [requirements({ maxTimeoutSeconds: 31_536_000 })];
    const seller = keep(await startSeller({ accepts }));
    const now = () => 1_700_000_000_999;
    await createFetch({ now })(seller.url);
    await createFetch({ now, maxValiditySeconds: 60 })(seller.url);
    const until = seller.paid.map(({ authorization }) => authorization.validBefore);
    expect(until).toEqual([1_700_000_600n, 1_700_000_060n]);
  });
});

describe("the payer", () => {
  it("may be a seed phrase or a private key, and every nonce is new", async () => {
    const { rpcUrl, accounts } = world.devnet();
    const rpcUrls = { [plasma]: rpcUrl };
    const seller = keep(await startSeller());
    const seedPhrase = "test test test test test test test test test test test junk";
    await createPayingFetch({ seedPhrase, accountIndex: 3, rpcUrls })(seller.url);
    await createPayingFetch({ privateKey: accounts.buyer.privateKey, rpcUrls })(seller.url);
    const payers = seller.paid.map(({ authorization }) => authorization.from);
    expect(payers).toEqual(Array(2).fill(accounts.buyer.address.toLowerCase()));
    expect(new Set(seller.paid.map(({ authorization }) => authorization.nonce)).size).toBe(2);
  });

  it("chooses a network where it has the funds, asking the next endpoint if one is down", async () => {
    const stableNet = await startDevnet({ chainId: 988 });
    const broken = keep(await listen((_, response) => void response.writeHead(500).end()));
    try {
      // Cheaper on Stable, but the funds are on Plasma.
      const accepts = () => [
        requirements({ network: stable, asset: stableUsdt0.address, amount: "900" }),
        requirements(),
      ];
      const seller = keep(await startSeller({ accepts }));
      const rpcUrls = {
        [stable]: stableNet.rpcUrl,
        [plasma]: [broken.url, world.devnet().rpcUrl],
      };
      await createFetch({ rpcUrls })(seller.url);
      await stableNet.mint({ to: world.account().address, amount: 5000n });
      await createFetch({ rpcUrls })(seller.url);
      const networks = seller.paid.map(({ payload }) =>
        payload.x402Version === 2 ? payload.accepted.network : payload.network,
      );
      expect(networks).toEqual([plasma, stable]);
    } finally {
      await stableNet.stop();
    }
  });

  it("pays on a funded network though another one hangs", async () => {
    const hanging = keep(await listen(() => {}));
    const accepts = () => [
      requirements({ network: stable, asset: stableUsdt0.address, amount: "1" }),
      requirements(),
    ];
    const seller = keep(await startSeller({ accepts }));
    const rpcUrls = { [stable]: hanging.url, [plasma]: world.devnet().rpcUrl };
    const response = await createFetch({ rpcUrls, balanceTimeoutMs: 300 })(seller.url);
    expect(response.status).toBe(200);
  });
});

describe("onPayment", () => {
  it("hears of terms and receipt, of no signature, and cannot break a payment", async () => {
    const seller = keep(await startSeller());
    const events: PaymentEvent[] = [];
    const warnings: Error[] = [];
    const hear = (warning: Error) => warnings.push(warning);
    process.on("warning", hear);
    try {
      const response = await createFetch({
        onPayment: (event) => {
          events.push(event);
          throw new Error("The log is full");
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
  });
});
