import {
  challengeNonce,
  encodePaymentRequired,
  formatChallenge,
  headerName,
  parseAuthorization,
  plasma,
  plasmaUsdt0,
  transferTypedData,
} from "@coinslot/protocol";
import { recoverTypedDataAddress } from "viem";
import { describe, expect, it } from "vitest";
import { OutcomeUnclearError, type PaymentEvent, paymentOf, receiptOf } from "../../index.ts";
import { listen } from "../../testing/listen.ts";
import { challengeOf, chargeOf, type MppSeller, startMppSeller } from "../../testing/mpp-seller.ts";
import { requirements } from "../../testing/seller.ts";
import { useWorld } from "../../testing/world.ts";

const world = useWorld();
const { keep, createFetch } = world;

type Change = Partial<Parameters<typeof startMppSeller>[0]>;

async function open(change: Change = {}): Promise<MppSeller> {
  return keep(await startMppSeller({ devnet: world.devnet(), ...change }));
}

/** A seller that offers one challenge, always afresh. */
function openWith(
  change: Parameters<typeof challengeOf>[0],
  charge?: Record<string, unknown>,
): Promise<MppSeller> {
  return open({ challenge: () => formatChallenge(challengeOf(change, chargeOf(charge))) });
}

function signatures(): number {
  return world.account().signatures();
}

describe("a purchase by MPP", () => {
  it("signs for the challenge under the budget's domain, and believes the receipt with the chain", async () => {
    const challenge = challengeOf({ opaque: "eyJhIjoiYiJ9", description: "Sun" });
    const seller = await open({ challenge: () => formatChallenge(challenge) });
    const events: PaymentEvent[] = [];
    const pay = createFetch({ onPayment: (event) => events.push(event) });
    const response = await pay(seller.url);
    expect(await response.json()).toEqual({ forecast: "sun" });
    expect(paymentOf(response)).toMatchObject({ state: "settled", protocol: "mpp" });
    const { address } = world.account();
    expect(receiptOf(response)).toMatchObject({
      success: true,
      network: plasma,
      payer: address.toLowerCase(),
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    });
    const [paid] = seller.paid;
    if (paid === undefined) throw new Error("Nothing was paid");
    const { credential, payload } = paid;
    expect(credential.challenge).toEqual(challenge);
    expect(credential.source).toBe(`did:pkh:${plasma}:${address}`);
    const authorization = parseAuthorization(payload.authorization);
    expect(authorization.nonce).toBe(challengeNonce(challenge));
    const { name, version } = plasmaUsdt0;
    const data = transferTypedData({
      ...{ authorization, network: plasma, asset: plasmaUsdt0.address },
      domain: { name, version },
    });
    const signer = await recoverTypedDataAddress({ ...data, signature: payload.signature });
    expect(signer).toBe(address);
    expect(events.map(({ state }) => state)).toEqual(["booked", "signed", "sent", "settled"]);
    expect(events[0]?.offer).toEqual({ protocol: "mpp", description: "Sun" });
  });

  it("ends with the earlier of the challenge's end and the longest validity", async () => {
    const now = Date.now();
    const seconds = Math.floor(now / 1000);
    const soon = new Date((seconds + 60) * 1000 + 999).toISOString();
    for (const [expires, end] of [
      ["2099-01-01T00:00:00Z", seconds + 600],
      [soon, seconds + 60],
      [undefined, seconds + 300],
    ] as const) {
      const seller = await openWith({ expires });
      await createFetch({ now: () => now })(seller.url);
      expect(seller.paid[0]?.payload.authorization.validBefore).toBe(`${end}`);
    }
  });

  it("leaves the caller's Authorization alone where the challenge names another header", async () => {
    const seller = await openWith({ header: "Payment-Authorization" });
    const headers = { Authorization: "Bearer mine" };
    expect((await createFetch()(seller.url, { headers })).status).toBe(200);
    expect(seller.paid[0]?.request.headers.authorization).toBe("Bearer mine");
  });

  it("counts in one budget with purchases by x402", async () => {
    const seller = await open();
    const pay = createFetch({ budget: { perDay: "$0.001" } });
    await pay(seller.url);
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });
    expect(signatures()).toBe(1);
  });

  it("is one signature when the answer is lost: the same credential is sent again", async () => {
    const seller = await open({
      onPaid: (_paid, response, count) => {
        if (count === 1) response.destroy();
        return count === 1;
      },
    });
    expect((await createFetch()(seller.url)).status).toBe(200);
    expect(new Set(seller.paid.map(({ header }) => header)).size).toBe(1);
    expect(seller.paid).toHaveLength(2);
    expect(signatures()).toBe(1);
  });

  it("is resumed from its text by another fetch, with the same credential and key", async () => {
    let isOpen = false;
    const seller = await open({
      onPaid: (_paid, response) => {
        if (!isOpen) response.writeHead(503, { "Retry-After": "999" }).end();
        return !isOpen;
      },
    });
    const kept: string[] = [];
    const beforeSend = (payment: unknown) => void kept.push(JSON.stringify(payment));
    const error = await createFetch({ beforeSend })(seller.url).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(OutcomeUnclearError);
    isOpen = true;
    const later = createFetch();
    const response = await later.resume(JSON.parse(kept[0] ?? ""), seller.url);
    expect(paymentOf(response)?.state).toBe("settled");
    const [first, second] = seller.paid;
    expect(second?.header).toBe(first?.header);
    expect(second?.request.headers["idempotency-key"]).toBe(
      first?.request.headers["idempotency-key"],
    );
    expect(signatures()).toBe(1);
    await expect(
      later.resume(JSON.parse(kept[0] ?? ""), seller.url, {
        headers: { Authorization: "Bearer a" },
      }),
    ).rejects.toMatchObject({ code: "request_mismatch" });
  });
});

describe("an answer with offers in both protocols", () => {
  const both = {
    headers: {
      [headerName.paymentRequired]: encodePaymentRequired({
        x402Version: 2,
        resource: { url: "/paid" },
        accepts: [requirements()],
      }),
    },
  };

  it("is paid by x402 first, and by the other protocol where that cannot be", async () => {
    const sent = async (change: Parameters<typeof createFetch>[0], headers = both.headers) => {
      const names: string[] = [];
      const seller = await open({ headers });
      await createFetch({
        ...change,
        beforeSend: ({ header }) => {
          names.push(header.name);
          throw new Error("It is enough");
        },
      })(seller.url).catch(() => undefined);
      return names;
    };
    expect(await sent({})).toEqual([headerName.paymentSignature]);
    expect(await sent({ protocols: ["mpp", "x402"] })).toEqual([headerName.authorization]);
    const dear = encodePaymentRequired({
      x402Version: 2,
      resource: { url: "/paid" },
      accepts: [requirements({ amount: "999999" })],
    });
    expect(await sent({}, { [headerName.paymentRequired]: dear })).toEqual([
      headerName.authorization,
    ]);
  });

  it("is returned unpaid where none of its protocols is wanted", async () => {
    const seller = await open();
    const response = await createFetch({ protocols: ["x402"] })(seller.url);
    expect(response.status).toBe(402);
    expect(signatures()).toBe(0);
  });

  it.each([[[]], [["x402", "x402"]], [["card"]]])("needs a list of protocols, not %j", (list) => {
    const change: Parameters<typeof createFetch>[0] = JSON.parse(
      `{"protocols":${JSON.stringify(list)}}`,
    );
    expect(() => createFetch(change)).toThrow("protocols is not a list of x402 and mpp");
  });
});

describe("a challenge is not paid", () => {
  const past = new Date(Date.now() - 1000).toISOString();
  const pretty = Buffer.from(JSON.stringify(chargeOf(), undefined, 1)).toString("base64url");
  const other = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";

  it.each([
    ["in the header Cookie", { header: "Cookie" }, {}, "unsupported_offer"],
    [
      "in the header Authorization by its name",
      { header: "Authorization" },
      {},
      "unsupported_offer",
    ],
    ["once it has expired", { expires: past }, {}, "unsupported_offer"],
    ["with a request that is not canonical", { request: pretty }, {}, "unsupported_offer"],
    ["with splits", {}, { methodDetails: { splits: [{}] } }, "unsupported_offer"],
    ["without a type", {}, { methodDetails: { credentialTypes: undefined } }, "unsupported_offer"],
    ["by permit2", {}, { methodDetails: { credentialTypes: ["permit2"] } }, "unsupported_offer"],
    ["on another chain", {}, { methodDetails: { chainId: 1 } }, "unsupported_offer"],
    ["with other decimals", {}, { methodDetails: { decimals: 2 } }, "asset_mismatch"],
    ["in an unknown token", {}, { currency: other }, "unknown_asset"],
    ["over the budget", {}, { amount: "100001" }, "over_budget"],
  ])("%s", async (_case, challenge, charge, code) => {
    const seller = await openWith(challenge, charge);
    const error = await world.refusalOf(createFetch()(seller.url));
    expect(error.code).toBe(code);
    expect(seller.paid).toEqual([]);
  });

  it("a challenge is not paid where a credential would replace the caller's own Authorization", async () => {
    const seller = await open();
    const headers = { Authorization: "Bearer mine" };
    const error = await world.refusalOf(createFetch()(seller.url, { headers }));
    expect(error.message).toContain("own Authorization header");
  });

  it("a challenge of another method or intent is not paid", async () => {
    const seller = await open({
      challenge: () => [
        formatChallenge(challengeOf({ method: "tempo" })),
        formatChallenge(challengeOf({ intent: "session" })),
      ],
    });
    const error = await world.refusalOf(createFetch()(seller.url));
    expect(error.code).toBe("unsupported_offer");
  });

  it.each(["Authorization", "Payment-Authorization"])(
    "a challenge is not paid where the caller's own credential is in %s",
    async (name) => {
      const challenge = formatChallenge(challengeOf({ header: "Payment-Authorization" }));
      const server = keep(
        await listen((_request, response) => {
          response.writeHead(402, { [headerName.authenticate]: challenge }).end("mine");
        }),
      );
      const response = await createFetch()(server.url, { headers: { [name]: "Payment mine" } });
      expect(await response.text()).toBe("mine");
      expect(signatures()).toBe(0);
    },
  );

  it("a challenge is not paid and spoils no other, where its credential would be too long for a header", async () => {
    const good = challengeOf();
    const long = chargeOf({ amount: "1", methodDetails: { padding: "x".repeat(5_000) } });
    const seller = await open({
      challenge: () => [formatChallenge(challengeOf({}, long)), formatChallenge(good)],
    });
    expect((await createFetch()(seller.url)).status).toBe(200);
    expect(seller.paid[0]?.credential.challenge.id).toBe(good.id);
    expect(signatures()).toBe(1);
  });

  it("a challenge is not paid and spoils no other, beside challenges of other schemes", async () => {
    const good = challengeOf();
    const seller = await open({
      challenge: () => [
        `Basic realm="a, b", ${formatChallenge(challengeOf({ expires: "2099-01-01T00:00:00Z" })).replace("2099-01-01T00:00:00Z", "soon")}`,
        formatChallenge(challengeOf({ header: "Cookie" })),
        'Payment id="a", id="a", request="%%%"',
        formatChallenge(good),
        'Bearer realm="z"',
      ],
    });
    expect((await createFetch()(seller.url)).status).toBe(200);
    expect(seller.paid[0]?.credential.challenge.id).toBe(good.id);
  });
});
