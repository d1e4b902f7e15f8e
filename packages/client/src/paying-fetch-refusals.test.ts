import { plasma, stable } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { OfferRefusedError, type PaymentErrorCode } from "./index.ts";
import { countSignatures } from "./testing/counting-account.ts";
import { listen } from "./testing/listen.ts";
import { answer402, requirements, startSeller } from "./testing/seller.ts";
import { useWorld } from "./testing/world.ts";

const world = useWorld();
const { keep, createFetch, refusalOf } = world;

type OnUnpaid = NonNullable<NonNullable<Parameters<typeof startSeller>[0]>["onUnpaid"]>;

const foreignToken = "0x00000000000000000000000000000000000000aa";

describe.each([1, 2] as const)("a paying fetch in version %i", (version) => {
  const cases: [string, PaymentErrorCode, Parameters<typeof requirements>[0]][] = [
    ["a price above the budget", "over_budget", { amount: "100001" }],
    ["a price above uint256", "over_budget", { amount: (2n ** 256n - 1n).toString() }],
    ["another asset", "unknown_asset", { asset: foreignToken }],
    ["other decimals", "asset_mismatch", { extra: { name: "USDT0", version: "1", decimals: 18 } }],
    ["another domain name", "asset_mismatch", { extra: { name: "USDC", version: "1" } }],
    ["another domain version", "asset_mismatch", { extra: { name: "USDT0", version: 1 } }],
    ["a network that is not configured", "unsupported_offer", { network: stable }],
    ["another scheme", "unsupported_offer", { scheme: "upto" }],
    [
      "another transfer method",
      "unsupported_offer",
      { extra: { name: "USDT0", version: "1", assetTransferMethod: "permit2" } },
    ],
    [
      "an unknown payment flow",
      "unsupported_offer",
      { extra: { name: "USDT0", version: "1", paymentFlow: "escrow" } },
    ],
  ];
  it.each(cases)("signs nothing for %s", async (_name, code, change) => {
    const seller = keep(await startSeller({ version, accepts: () => [requirements(change)] }));
    const error = await refusalOf(createFetch()(seller.url), seller);
    expect(error).toBeInstanceOf(OfferRefusedError);
    expect(error.code).toBe(code);
    expect(world.states()).toEqual([]);
  });

  it("signs nothing for an offer with another host's resource", async () => {
    const resource = () => "https://other.example/weather";
    const seller = keep(await startSeller({ version, resource }));
    expect((await refusalOf(createFetch()(seller.url), seller)).code).toBe("resource_mismatch");
  });

  it("signs nothing for an unreadable offer", async () => {
    const seller = keep(
      await startSeller({ version, offer: { accepts: [null, 7, { scheme: "exact" }] } }),
    );
    expect((await refusalOf(createFetch()(seller.url), seller)).code).toBe("unsupported_offer");
  });
});

describe("a refused entry of an offer", () => {
  it("does not block a payable one, and neither does a malformed one", async () => {
    const offer = {
      accepts: [
        { scheme: "exact" },
        requirements({ asset: foreignToken, amount: "1" }),
        requirements({ amount: "999999999" }),
        requirements({ amount: "2000" }),
        requirements({ amount: "1500" }),
      ],
    };
    const seller = keep(await startSeller({ offer }));
    expect((await createFetch()(seller.url)).status).toBe(200);
    expect(seller.paid[0]?.authorization.value).toBe(1500n);
  });

  it("is listed with its reason, and the furthest one gives the error its code", async () => {
    const accepts = () => [
      requirements({ asset: foreignToken }),
      requirements({ amount: "999999999" }),
      requirements({ network: stable }),
    ];
    const seller = keep(await startSeller({ accepts }));
    const error = await refusalOf(createFetch()(seller.url), seller);
    expect(error).toBeInstanceOf(OfferRefusedError);
    if (!(error instanceof OfferRefusedError)) return;
    expect(error.code).toBe("over_budget");
    expect(error.message).toBe("$999.999999 is more than the budget allows for one payment: $0.1");
    expect(error.refusals.map(({ code }) => code)).toEqual([
      "unknown_asset",
      "over_budget",
      "unsupported_offer",
    ]);
  });
});

describe("a request for a paid route", () => {
  it("ends before a signature without funds on any offered network", async () => {
    const seller = keep(await startSeller({ accepts: () => [requirements({ amount: "100000" })] }));
    const poor = world.devnet().accounts.others[0];
    if (poor === undefined) throw new Error("The devnet has no further account");
    const call = createFetch({ account: poor })(seller.url);
    expect((await refusalOf(call, seller)).code).toBe("insufficient_funds");
  });

  it("ends in time with funds that no endpoint confirms, and the error names no endpoint", async () => {
    const hanging = keep(await listen(() => {}));
    const broken = keep(await listen((_, response) => void response.writeHead(401).end("no")));
    const rpcUrls = { [plasma]: [`${hanging.url}/key-1234`, `${broken.url}/key-5678`] };
    const seller = keep(await startSeller());
    const call = createFetch({ rpcUrls, balanceTimeoutMs: 300 })(seller.url);
    const error = await refusalOf(call, seller);
    expect(error.code).toBe("balance_unreadable");
    expect(`${error.stack} ${String(error.cause)}`).not.toMatch(/key-|127\.0\.0\.1/);
  });
});

describe("a body above the buffer limit", () => {
  it("streams through to a free route, and is not paid for", async () => {
    const server = keep(
      await listen((request, response) => {
        if (request.url === "/free") return void response.end(String(request.body.length));
        const resource = `http://${request.headers.host}/`;
        answer402(response, 2, { resource, accepts: [requirements()] });
      }),
    );
    const pay = createFetch({ maxBodyBytes: 1000 });
    const post = (path: string, size: number) =>
      pay(`${server.url}${path}`, {
        method: "POST",
        body: new Blob(["x".repeat(size)]).stream(),
        duplex: "half",
      });
    expect(await (await post("/free", 300_000)).text()).toBe("300000");
    expect((await refusalOf(post("/paid", 1001))).code).toBe("body_too_large");
  });
});

describe("a 402 whose body never ends", () => {
  it("counts as no offer after a timeout, and is returned unchanged", async () => {
    const onUnpaid: OnUnpaid = (_, response) => response.writeHead(402).write('{"x402Version":1,');
    const seller = keep(await startSeller({ onUnpaid }));
    const response = await createFetch({ attemptTimeoutMs: 1_000 })(seller.url);
    expect(response.status).toBe(402);
    const { value } = (await response.body?.getReader().read()) ?? {};
    expect(new TextDecoder().decode(value)).toBe('{"x402Version":1,');
  });

  it("ends byte by byte at the caller's abort, or after ten seconds, at any other timeout", async () => {
    const onUnpaid: OnUnpaid = (_, response) => {
      response.writeHead(402);
      const drip = setInterval(() => response.write(" "), 20);
      response.once("close", () => clearInterval(drip));
      return true;
    };
    const seller = keep(await startSeller({ onUnpaid }));
    const controller = new AbortController();
    const aborted = createFetch()(seller.url, { signal: controller.signal });
    const began = performance.now();
    const waited = createFetch()(seller.url);
    controller.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    expect((await waited).status).toBe(402);
    // The default for an attempt to pay is two minutes.
    expect(performance.now() - began).toBeLessThan(60_000);
    expect(world.account().signatures()).toBe(0);
  });
});

describe("an aborted call", () => {
  it("throws its reason and pays nothing, at any moment before the payment", async () => {
    const seller = keep(await startSeller());
    for (const moment of ["booked", "signed"]) {
      const controller = new AbortController();
      const states: string[] = [];
      const pay = createFetch({
        onPayment: ({ state }) => {
          states.push(state);
          if (state === moment) controller.abort(new Error("Enough"));
        },
      });
      await expect(pay(seller.url, { signal: controller.signal })).rejects.toThrow("Enough");
      expect(states.at(-1)).toBe("released");
    }
    await expect(createFetch()(seller.url, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: "AbortError",
    });
    expect(seller.paid).toHaveLength(0);
  });

  it("does not wait for an account that never answers", async () => {
    const seller = keep(await startSeller());
    const controller = new AbortController();
    const account = countSignatures(world.devnet().accounts.buyer, async () => {
      controller.abort(new Error("Enough"));
      await new Promise(() => undefined);
    });
    const call = createFetch({ account })(seller.url, { signal: controller.signal });
    await expect(call).rejects.toThrow("Enough");
    expect(seller.paid).toHaveLength(0);
    expect(world.states()).toEqual(["booked", "released"]);
  });
});
