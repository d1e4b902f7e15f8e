import {
  type Challenge,
  challengeNonce,
  encodeCredential,
  encodePaymentPayload,
  formatSource,
  headerName,
  parseChallenges,
  writeAuthorizationPayload,
} from "@coinslot/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Cycle } from "../cycles/cycle.ts";
import { readRecording } from "../recording/recording.ts";
import { openTestShop, signPayment, type TestShop } from "../testing/test-shop.ts";
import { replayCycle } from "./replay-cycle.ts";

let shop: TestShop;
beforeAll(async () => {
  shop = await openTestShop();
});
afterAll(() => shop?.close());

type Changes = Parameters<typeof signPayment>[1];
type Write = (challenge: Challenge) => Promise<[name: string, value: string]>;

const byV2 = (changes: Changes) => async (): Promise<[string, string]> => {
  const { header } = await signPayment(shop, changes);
  return [headerName.paymentSignature, header];
};

const byV1 =
  (changes: Changes, named: { scheme?: string; network?: `eip155:${number}` } = {}) =>
  async (): Promise<[string, string]> => {
    const { payload } = await signPayment(shop, changes);
    const { scheme = "exact", network = shop.devnet.network } = named;
    const message = { x402Version: 1, scheme, network, payload } as const;
    return [headerName.payment, encodePaymentPayload(message)];
  };

const byMpp =
  (changes: Changes, change: (challenge: Challenge) => Challenge, source?: string): Write =>
  async (challenge) => {
    const { accounts, network } = shop.devnet;
    const validBefore = BigInt(Math.floor(Date.parse(challenge.expires ?? "") / 1000));
    const authorization = {
      nonce: challengeNonce(challenge),
      validBefore,
      ...changes?.authorization,
    };
    const { payload: paid } = await signPayment(shop, { ...changes, authorization });
    const credential = {
      challenge: change(challenge),
      payload: writeAuthorizationPayload(paid),
      source: source ?? formatSource(network, accounts.buyer.address),
    };
    return [headerName.authorization, encodeCredential(credential)];
  };

/** Rewrites a member of the challenge's `request`. */
const withAmount = (challenge: Challenge): Challenge => {
  const read = JSON.parse(Buffer.from(challenge.request, "base64url").toString());
  const text = JSON.stringify({ ...read, amount: "10" });
  return { ...challenge, request: Buffer.from(text).toString("base64url") };
};

/** Asks, pays with the written payment, and returns the recorded cycle. */
async function record(write: Write): Promise<Cycle> {
  const inspector = await shop.inspect();
  const url = `${inspector.proxyUrl}/weather`;
  const unpaid = await fetch(url);
  await unpaid.arrayBuffer();
  const [read] = parseChallenges(unpaid.headers.get("www-authenticate") ?? "");
  if (read?.ok !== true) throw new Error("The shop has made no challenge.");
  const [name, value] = await write(read.challenge);
  await (await fetch(url, { headers: { [name]: value } })).arrayBuffer();
  await inspector.settled();
  const [cycle] = readRecording(inspector.record()).cycles;
  if (cycle === undefined) throw new Error("No cycle was recorded.");
  return cycle;
}

const same = (challenge: Challenge) => challenge;
const receive = { primaryType: "ReceiveWithAuthorization" } as const;
const nonce = `0x${"cd".repeat(32)}` as const;
const other = "0x00000000000000000000000000000000000000aa";

const cases: [name: string, write: Write, status: number, check: string | undefined][] = [
  ["version 2 in the compact form", byV2({ form: "compact" }), 200, undefined],
  ["version 2 with a high s", byV2({ form: "high s" }), 402, "signer"],
  ["version 2 signed to be received", byV2(receive), 402, "signed type"],
  [
    "version 2 that names another domain",
    byV2({ accepted: { extra: { name: "USDC", version: "1" } } }),
    402,
    "domain name",
  ],
  ["version 1", byV1({}), 200, undefined],
  ["version 1 for too little", byV1({ authorization: { value: 999n } }), 402, "amount"],
  ["version 1 signed to be received", byV1(receive), 402, "signed type"],
  ["version 1 by another scheme", byV1({}, { scheme: "upto" }), 402, "scheme"],
  ["version 1 on another network", byV1({}, { network: "eip155:8453" }), 402, "network"],
  ["MPP", byMpp({}, same), 200, undefined],
  ["MPP in the compact form", byMpp({ form: "compact" }, same), 200, undefined],
  ["MPP signed to be received", byMpp(receive, same), 402, "signed type"],
  ["MPP for too little", byMpp({ authorization: { value: 999n } }, same), 402, "amount"],
  ["MPP with a nonce of its own", byMpp({ authorization: { nonce } }, same), 402, "nonce"],
  [
    "MPP beyond the challenge",
    byMpp({ authorization: { validBefore: 9_999_999_999n } }, same),
    402,
    "valid until",
  ],
  ["MPP at another price", byMpp({}, withAmount), 402, "amount"],
  ["MPP to another challenge", byMpp({}, (was) => ({ ...was, id: "another" })), 402, "challenge"],
  [
    "MPP with a changed member",
    byMpp({}, (was) => ({ ...was, expires: "2099-01-01T00:00:00Z" })),
    402,
    "challenge",
  ],
  ["MPP of another source", byMpp({}, same, `did:pkh:eip155:9745:${other}`), 402, "source"],
];

describe("a replay", () => {
  it.each(cases)(
    "a replay of a payment by %s ends as it was recorded",
    async (_case, write, status, check) => {
      const cycle = await record(write);
      const paid = cycle.legs.at(-1);
      expect([paid?.answer?.status, paid?.payment?.failed?.check]).toEqual([status, check]);
      const { seller, devnet } = shop;
      const report = await replayCycle(cycle, { url: seller.url, rpcUrl: devnet.rpcUrl });
      expect(report.lines.filter(({ isSame }) => !isSame)).toEqual([]);
      expect(report.lines.map(({ about }) => about)).toContain("paid answer");
    },
  );

  it("is refused before a seller that is elsewhere, also through a proxy that is here", async () => {
    const cycle = await record(byV2({}));
    const { rpcUrl } = shop.devnet;
    const inspector = await shop.inspect({ seller: "http://shop.example", rpcUrls: [rpcUrl] });
    const body = JSON.stringify({ coinslotRecording: 1, recordedAt: "", cycles: [cycle] });
    const headers = { "content-type": "application/json", "x-coinslot-inspector": "1" };
    const answer = await fetch(`${inspector.pageUrl}api/replay`, { method: "POST", headers, body });
    expect([answer.status, await answer.json()]).toEqual([
      400,
      { error: "A replay asks a seller of this machine: the URL leads elsewhere." },
    ]);
  });

  it("is refused where a request is not the one that the cycle shows", async () => {
    const cycle = await record(byV2({}));
    const place = { url: shop.seller.url, rpcUrl: shop.devnet.rpcUrl };
    for (const request of [{ method: "DELETE" }, { target: "/admin" }]) {
      const legs = cycle.legs.map((leg) => ({ ...leg, request: { ...leg.request, ...request } }));
      await expect(replayCycle({ ...cycle, legs }, place)).rejects.toThrow(
        "differ in method or URL",
      );
    }
  });

  it("is refused where no key has signed the recorded payment", async () => {
    const cycle = await record(async () => {
      const { header } = await signPayment(shop);
      const message = JSON.parse(Buffer.from(header, "base64").toString());
      message.payload.signature = `0x${"ab".repeat(200)}`;
      const value = Buffer.from(JSON.stringify(message)).toString("base64");
      return [headerName.paymentSignature, value];
    });
    const place = { url: shop.seller.url, rpcUrl: shop.devnet.rpcUrl };
    await expect(replayCycle(cycle, place)).rejects.toThrow(
      "does not say how the payment was signed",
    );
  });
});

describe("a recording", () => {
  it("a recording of an offer with long and deep members can be read again", async () => {
    const inspector = await shop.inspect();
    const long = { scheme: "s".repeat(40_000), list: Array.from({ length: 2_000 }, () => 0) };
    const message = { x402Version: 2, payload: long };
    const value = Buffer.from(JSON.stringify(message)).toString("base64");
    const headers = { [headerName.paymentSignature]: value.slice(0, 60_000) };
    await (await fetch(`${inspector.proxyUrl}/weather`, { headers })).arrayBuffer();
    await inspector.settled();
    const text = inspector.record();
    expect(readRecording(text).cycles).toEqual(inspector.cycles());
    expect(text.length).toBeLessThan(2 * JSON.stringify(inspector.cycles()).length);
  });
});
