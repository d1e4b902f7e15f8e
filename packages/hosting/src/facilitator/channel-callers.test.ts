import {
  type ChannelFixture,
  type ClaimRow,
  createChannelFixture,
  type Devnet,
  listen,
  placeChannels,
  startDevnet,
} from "@coinslot/devnet";
import { type ChannelConfig, channelScheme } from "@coinslot/protocol";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createCallerKey } from "./caller-keys.ts";
import { startHosted } from "./testing/hosted.ts";

const [shop, kiosk] = [createCallerKey("shop"), createCallerKey("kiosk")];

/** Of a token with 30 decimals: its amounts are long. */
const unit = 10n ** 30n;

let devnet: Devnet;
let channels: ChannelFixture;

beforeAll(async () => {
  devnet = await startDevnet();
  await placeChannels(devnet);
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 100n * unit });
  channels = createChannelFixture(devnet);
});
afterAll(() => devnet?.stop());

/**
 * Settings with a relayer of their own: the fixture sends by the devnet's, and nonces stay apart.
 */
function envOf(more: Record<string, string> = {}) {
  const [relayer] = devnet.accounts.others;
  return {
    FACILITATOR_PRIVATE_KEY: relayer?.privateKey,
    COINSLOT_TOKENS: `${devnet.network}/${devnet.token}`,
    FACILITATOR_KEYS: `${shop.entry},${kiosk.entry}`,
    FACILITATOR_CHANNEL_RECEIVERS: `shop:${devnet.accounts.seller.address}`,
    ...more,
  };
}

const bearer = ({ key }: { key: string }) => ({ Authorization: `Bearer ${key}` });

/** The body of `/settle`, as the released channel manager sends it. */
function bodyOf(payload: object) {
  const { network, token, accounts } = devnet;
  const terms = { scheme: channelScheme, network, asset: token, payTo: accounts.seller.address };
  const paymentRequirements = { ...terms, amount: "0", maxTimeoutSeconds: 0, extra: {} };
  const paymentPayload = { x402Version: 2, accepted: paymentRequirements, payload };
  const body: unknown = JSON.parse(
    JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements }, (_, value: unknown) =>
      typeof value === "bigint" ? value.toString() : value,
    ),
  );
  return Object(body);
}

/** A channel with money, and a hundred rows of it: as large a claim as there is. */
async function openRows(): Promise<{ config: ChannelConfig; claims: ClaimRow[] }> {
  const config = channels.configOf();
  await channels.deposit(config, 2n * unit);
  const claims: ClaimRow[] = [];
  for (let row = 1n; row <= 100n; row += 1n) {
    claims.push(await channels.rowOf(config, unit + row));
  }
  return { config, claims };
}

describe("a hosted facilitator with channels", () => {
  it("claims a hundred rows for the seller whose receiver it is, and for no other caller", async () => {
    const hosted = await startHosted(devnet, envOf());
    const { config, claims } = await openRows();
    const signature = await channels.signBatch(claims);
    const body = bodyOf({ type: "claim", claims, claimAuthorizerSignature: signature });
    expect(JSON.stringify(body).length).toBeGreaterThan(64 * 1_024);

    expect((await hosted.post("/settle", body)).status).toBe(401);
    const refused = await hosted.post("/settle", body, bearer(kiosk));
    expect(refused.status).toBe(200);
    expect(refused.body).toEqual({
      success: false,
      errorReason: "recipient_not_allowed",
      errorMessage: expect.any(String),
      transaction: "",
      network: devnet.network,
    });
    expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 0n });

    const claimed = await hosted.post("/settle", body, bearer(shop));
    expect(claimed.body).toEqual({
      success: true,
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      network: devnet.network,
    });
    expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: unit + 100n });
    const metrics = await hosted.get("/metrics");
    expect(metrics.text).toContain(
      `coinslot_caller_calls_total{network="${devnet.network}",kind="claim",outcome="done"} 1`,
    );
  });

  it("posts what happens to a call's callback, as it does for a payment", async () => {
    const events: { type: string; details: object }[] = [];
    const receiver = await listen(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += String(chunk);
      events.push(JSON.parse(body));
      response.end();
    });
    onTestFinished(() => receiver.close());
    const hosted = await startHosted(
      devnet,
      envOf({ FACILITATOR_UNSAFE_PRIVATE_CALLBACKS: "true" }),
    );
    const config = channels.configOf();
    await channels.deposit(config, unit);
    const headers = { ...bearer(shop), "X-Event-Callback": receiver.url };
    const signature = await channels.signVoucher(config, 7n);
    const channel = channels.idOf(config);
    const voucher = { channelId: channel, maxClaimableAmount: 7n, signature };
    const payload = { type: "voucher", channelConfig: config, voucher };
    await hosted.post("/verify", bodyOf(payload), headers);
    const claims = [await channels.rowOf(config, 7n)];
    const claimAuthorizerSignature = await channels.signBatch(claims);
    const claim = { type: "claim", claims, claimAuthorizerSignature };
    const { transaction } = (await hosted.post("/settle", bodyOf(claim), headers)).body;
    await hosted.post("/settle", bodyOf(claim), { ...headers, ...bearer(kiosk) });

    const terms = { network: devnet.network, asset: devnet.token };
    const bought = { ...terms, payload: "voucher", channel, payer: config.payer };
    const claimed = { ...terms, payload: "claim" };
    const refused = { ...claimed, error: "recipient_not_allowed" };
    await expect
      .poll(() => events, { timeout: 20_000 })
      .toMatchObject([
        { type: "verify_started", details: { ...bought, checks: expect.any(Array) } },
        { type: "verify_completed", details: { ...bought, isValid: false } },
        { type: "settle_started", details: claimed },
        { type: "settle_completed", details: { ...claimed, transactionHash: transaction } },
        { type: "settle_failed", details: refused },
      ]);
  });

  it("lists channels without a key of its own, which does not sign then", async () => {
    const hosted = await startHosted(devnet, envOf());
    const { network } = devnet;
    const { kinds } = (await hosted.get("/supported")).body;
    expect(kinds).toContainEqual({ x402Version: 2, scheme: channelScheme, network });
    const { claims } = await openRows();
    const unsigned = bodyOf({ type: "claim", claims });
    expect((await hosted.post("/settle", unsigned, bearer(shop))).body).toMatchObject({
      errorReason: "invalid_batch_settlement_evm_authorizer_not_configured",
    });
  });

  it("answers malformed calls with 400, and a voucher with its reason", async () => {
    const hosted = await startHosted(devnet, envOf());
    for (const payload of [
      {},
      { type: "claim", claims: [] },
      { type: "claim", claims: [{}] },
      { type: "settle", receiver: "0x12", token: devnet.token },
      { type: "refund" },
      { type: "withdraw" },
    ]) {
      const answer = await hosted.post("/settle", bodyOf(payload), bearer(shop));
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject({ success: false, errorReason: "invalid_payload" });
    }
    const config = channels.configOf();
    const signature = await channels.signVoucher(config, 1n);
    const voucher = { channelId: channels.idOf(config), maxClaimableAmount: 1n, signature };
    const payload = { type: "voucher", channelConfig: config, voucher };
    expect((await hosted.post("/settle", bodyOf(payload), bearer(shop))).body).toMatchObject({
      success: false,
      errorReason: "invalid_batch_settlement_evm_payload_type",
    });
  });

  it("serves none where no caller has a receiver", async () => {
    const hosted = await startHosted(devnet, envOf({ FACILITATOR_CHANNEL_RECEIVERS: "" }));
    expect((await hosted.get("/supported")).body.kinds).toHaveLength(2);
    const settle = {
      type: "settle",
      receiver: devnet.accounts.seller.address,
      token: devnet.token,
    };
    expect((await hosted.post("/settle", bodyOf(settle), bearer(shop))).status).toBe(400);
  });
});
