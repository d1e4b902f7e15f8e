import { createPayingFetch, type Protocol } from "@coinslot/client";
import { decodePaymentRequired, encodePaymentPayload, headerName } from "@coinslot/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Cycle } from "./cycles/cycle.ts";
import { stateOf } from "./cycles/state-of.ts";
import { openTestShop, signPayment, type TestShop } from "./testing/test-shop.ts";

let shop: TestShop;
beforeAll(async () => {
  shop = await openTestShop();
});
afterAll(() => shop?.close());

function payingFetch(protocols: Protocol[]) {
  const { accounts, network, rpcUrl } = shop.devnet;
  return createPayingFetch({
    account: accounts.buyer,
    rpcUrls: { [network]: rpcUrl },
    budget: { perPayment: "$0.01" },
    protocols,
  });
}

/** The only cycle of an inspector, once it has been looked at. */
async function onlyCycle(inspector: {
  cycles(): readonly Cycle[];
  settled(): Promise<void>;
}): Promise<Cycle> {
  await inspector.settled();
  const [cycle] = inspector.cycles();
  if (cycle === undefined) throw new Error("No cycle has passed.");
  expect(inspector.cycles()).toHaveLength(1);
  return cycle;
}

describe("an inspected purchase", () => {
  it.each([["x402"], ["mpp"]] as const)(
    "is one cycle by %s, with offers, payment, receipt and gas",
    async (protocol) => {
      const inspector = await shop.inspect({ rpcUrls: [shop.devnet.rpcUrl] });
      const answer = await payingFetch([protocol])(`${inspector.proxyUrl}/weather?by=${protocol}`);
      expect(await answer.json()).toEqual({ forecast: "sun" });
      const cycle = await onlyCycle(inspector);
      expect(stateOf(cycle)).toBe("paid");
      const [unpaid, paid] = cycle.legs;
      expect(unpaid?.ways.map(({ wire, price }) => `${wire}: ${price}`)).toEqual([
        "x402 v2: 0.001 USDT0",
        "MPP: 0.001 USDT0",
        "x402 v1: 0.001 USDT0",
      ]);
      const wire = protocol === "mpp" ? "MPP" : "x402 v2";
      expect(paid?.payment).toMatchObject({ wire, price: "0.001 USDT0", isRepeated: false });
      expect(paid?.payment?.comparisons.filter(({ verdict }) => verdict !== "same")).toEqual([]);
      expect(paid?.payment?.comparisons.map(({ check }) => check)).toContain("signer");
      expect(paid?.receipt).toMatchObject({ wire, success: true });
      expect(cycle.chain).toMatchObject({
        status: "success",
        gasUsed: expect.stringMatching(/^\d{5,}$/),
      });
      expect(paid?.decoded.map(({ header }) => header)).toEqual(
        protocol === "mpp"
          ? ["Authorization", "Payment-Receipt"]
          : ["PAYMENT-SIGNATURE", "PAYMENT-RESPONSE"],
      );
    },
  );

  it("joins a payment of version 1, and its repetition, to the offer", async () => {
    const inspector = await shop.inspect();
    const url = `${inspector.proxyUrl}/weather?v1`;
    await (await fetch(url)).arrayBuffer();
    const { header } = await signPayment(shop);
    const { payload } = JSON.parse(Buffer.from(header, "base64").toString());
    const network = shop.devnet.network;
    const v1 = encodePaymentPayload({ x402Version: 1, scheme: "exact", network, payload });
    const headers = {
      [headerName.payment]: v1,
      [headerName.idempotencyKey]: "my-own-secret-key-1",
    };
    for (const _attempt of [1, 2]) {
      const answer = await fetch(url, { headers });
      expect([answer.status, await answer.json()]).toEqual([200, { forecast: "sun" }]);
    }
    const cycle = await onlyCycle(inspector);
    expect(cycle.legs.map(({ payment }) => payment?.isRepeated)).toEqual([undefined, false, true]);
    expect(cycle.legs[1]?.key).toBe(cycle.legs[2]?.key);
    expect(
      cycle.legs[1]?.payment?.comparisons.find(({ check }) => check === "signer")?.verdict,
    ).toBe("same");
  });

  it("passes free requests without a cycle", async () => {
    const inspector = await shop.inspect();
    expect(await (await fetch(`${inspector.proxyUrl}/free`)).text()).toBe("free");
    expect(inspector.cycles()).toEqual([]);
    expect(inspector.counts()).toEqual({ passed: 1, dropped: 0 });
  });
});

describe("a refused payment", () => {
  /** Asks, pays with what is changed, and returns the cycle. */
  async function refuse(changes: Parameters<typeof signPayment>[1]): Promise<Cycle> {
    const inspector = await shop.inspect();
    const url = `${inspector.proxyUrl}/weather`;
    const unpaid = await fetch(url);
    await unpaid.arrayBuffer();
    expect(
      decodePaymentRequired(unpaid.headers.get("payment-required") ?? "").accepts,
    ).toHaveLength(1);
    const { header } = await signPayment(shop, changes);
    const answer = await fetch(url, { headers: { [headerName.paymentSignature]: header } });
    await answer.arrayBuffer();
    expect(answer.status).toBe(402);
    const cycle = await onlyCycle(inspector);
    expect(stateOf(cycle)).toBe("refused");
    return cycle;
  }

  const other = "0x00000000000000000000000000000000000000aa";
  const now = Math.floor(Date.now() / 1000);
  it.each<[string, string, RegExp, Parameters<typeof signPayment>[1]]>([
    [
      "too little",
      "amount",
      /offered 1000, presented 999\. 1 units too few/,
      { authorization: { value: 999n } },
    ],
    [
      "another recipient",
      "recipient",
      /authorization\.to: .*presented 0x0+aa/,
      { authorization: { to: other } },
    ],
    [
      "an expired time",
      "valid until",
      /expired \d+ s ago/,
      { authorization: { validBefore: BigInt(now - 5) } },
    ],
    [
      "a clock ahead",
      "valid from",
      /valid in \d+ s/,
      { authorization: { validAfter: BigInt(now + 90) } },
    ],
    [
      "a ticker as domain name",
      "domain name",
      /domain\.name: offered USDT0, presented USDC\. .*not its ticker/,
      { domain: { name: "USDC" } },
    ],
    [
      "another domain version",
      "domain version",
      /offered 1, presented 2/,
      { domain: { version: "2" } },
    ],
    [
      "another chain's domain",
      "domain chainId",
      /offered eip155:9745, presented eip155:8453/,
      { network: "eip155:8453" },
    ],
    [
      "terms at another price",
      "amount",
      /accepted\.amount: offered 1000, presented 10/,
      { accepted: { amount: "10" } },
    ],
    ["another asset", "asset", /accepted\.asset/, { accepted: { asset: other } }],
  ])("a refused payment for %s names the check %s", async (_case, check, says, changes) => {
    const cycle = await refuse(changes);
    const failed = cycle.legs.at(-1)?.payment?.failed;
    expect(failed?.check).toBe(check);
    expect(failed?.says).toMatch(says);
  });

  it("a refused payment for a changed message names the signer", async () => {
    const inspector = await shop.inspect();
    const { header } = await signPayment(shop);
    const message = JSON.parse(Buffer.from(header, "base64").toString());
    message.payload.authorization.nonce = `0x${"ab".repeat(32)}`;
    const changed = Buffer.from(JSON.stringify(message)).toString("base64");
    const url = `${inspector.proxyUrl}/weather`;
    await (await fetch(url, { headers: { [headerName.paymentSignature]: changed } })).arrayBuffer();
    const cycle = await onlyCycle(inspector);
    expect(cycle.legs[0]?.payment?.failed).toMatchObject({
      check: "signer",
      says: expect.stringContaining("a member was changed after signing"),
    });
  });

  it("a refused payment that cannot be decoded shows the fault, and the JSON there is", async () => {
    const inspector = await shop.inspect();
    const url = `${inspector.proxyUrl}/weather`;
    const bad = Buffer.from(
      JSON.stringify({ x402Version: 2, payload: { "<script>": 1 } }),
    ).toString("base64");
    const answer = await fetch(url, { headers: { [headerName.paymentSignature]: bad } });
    await answer.arrayBuffer();
    expect(answer.status).toBe(400);
    const cycle = await onlyCycle(inspector);
    expect(cycle.legs[0]?.payment?.failed?.check).toBe("form");
    expect(cycle.legs[0]?.decoded[0]).toMatchObject({
      fault: expect.stringContaining("at payload.signature"),
      value: { payload: { "<script>": 1 } },
    });
  });
});

describe("the record of an inspector", () => {
  it("holds no signature, key, cookie, credential or secret of a purchase by any wire", async () => {
    const inspector = await shop.inspect();
    const secrets = {
      cookie: "sid=c00kie-of-the-buyer",
      referer: "http://localhost/login?token=r3ferer-of-the-buyer",
      "x-api-key": "k3y-of-the-buyer",
      authorization: "Bearer t0ken-of-the-buyer",
      "idempotency-key": "idempotency-of-the-buyer",
    };
    const body = JSON.stringify({
      q: "rain",
      password: "passw0rd-of-the-buyer",
      echo: "c00kie-of-the-buyer",
    });
    const url = `${inspector.proxyUrl}/echo?api_key=qu3ry-of-the-buyer&q=1`;
    const ask = (headers: Record<string, string>) =>
      fetch(url, { method: "POST", body, headers: { ...secrets, ...headers } });
    await (await ask({})).arrayBuffer();
    const { header, signature } = await signPayment(shop);
    const paid = await ask({ [headerName.paymentSignature]: header });
    expect(paid.status).toBe(200);
    await paid.arrayBuffer();
    const v1 = await signPayment(shop);
    const { payload } = JSON.parse(Buffer.from(v1.header, "base64").toString());
    const network = shop.devnet.network;
    const v1Header = encodePaymentPayload({ x402Version: 1, scheme: "exact", network, payload });
    expect(
      (await ask({ [headerName.payment]: v1Header, "idempotency-key": "another-key-0002" })).status,
    ).toBe(200);
    const mpp = await payingFetch(["mpp"])(`${inspector.proxyUrl}/weather`);
    expect(mpp.status).toBe(200);
    await inspector.settled();
    const kept = JSON.stringify(inspector.cycles());
    expect(kept).toContain("rain");
    expect(kept.match(/.{60}(?:of-the-buyer|s3cr3t-session|another-key-0002)/g)).toBeNull();
    expect(kept.match(/0x[0-9a-f]{128,}/i)).toBeNull();
    for (const secret of [signature, v1.signature, header, v1.header, v1Header]) {
      expect(kept.includes(secret.slice(2, 40))).toBe(false);
    }
  });

  it("is bounded by number and by bytes", async () => {
    const inspector = await shop.inspect({ maxCycles: 3 });
    for (const index of [1, 2, 3, 4, 5])
      await (await fetch(`${inspector.proxyUrl}/weather?${index}`)).arrayBuffer();
    expect(inspector.cycles().map(({ target }) => target)).toEqual([
      "/weather?3",
      "/weather?4",
      "/weather?5",
    ]);
    expect(inspector.counts().dropped).toBe(2);
    const small = await shop.inspect({ maxBytes: 10_000 });
    for (const index of [1, 2, 3, 4, 5])
      await (await fetch(`${small.proxyUrl}/weather?${index}`)).arrayBuffer();
    expect(JSON.stringify(small.cycles()).length).toBeLessThan(11_000);
    expect(small.counts().dropped).toBeGreaterThan(0);
  });
});
