import { createChannelFixture, listen, placeChannels, startDevnet } from "@coinslot/devnet";
import { createFacilitator } from "@coinslot/facilitator";
import { headerName, toLowerHex } from "@coinslot/protocol";
import express from "express";
import { describe, expect, it, onTestFinished } from "vitest";
import { paymentMiddleware } from "../index.ts";
import { channelOfferOf, channelReceiptOf, createChannelBuyer } from "../testing/channel-shop.ts";

/** A seller on a devnet, and a channel of its offer, with 10,000 units. */
async function openScene(channelOptions: object = {}) {
  const devnet = await startDevnet();
  onTestFinished(() => devnet.stop());
  await placeChannels(devnet);
  const { network, accounts, token, rpcUrl } = devnet;
  await devnet.mint({ to: accounts.buyer.address, amount: 1_000_000n });
  const channels = createChannelFixture(devnet);
  const facilitator = createFacilitator({
    networks: [{ network, rpcUrls: [rpcUrl], relayer: accounts.relayer, finalAfter: 1 }],
    ledger: "sqlite::memory:",
    channels: { authorizer: { privateKey: accounts.deployer.privateKey }, ...channelOptions },
  });
  onTestFinished(() => facilitator.close());
  let runs = 0;
  const gate = paymentMiddleware(
    {
      "/weather": {
        accepts: {
          scheme: "batch-settlement",
          network,
          payTo: accounts.seller.address,
          withdrawDelay: 900,
          former: [{ withdrawDelay: 1_800 }],
          price: { amount: "1000", asset: token, extra: { name: "USDT0", version: "1" } },
        },
      },
    },
    facilitator,
  );
  const app = express();
  app.use(gate);
  app.all("/weather", (_request, response) => {
    runs += 1;
    response.json({ runs });
  });
  await gate.ready();
  const server = await listen(app);
  onTestFinished(() => server.close());
  const url = `${server.url}/weather`;
  const offer = channelOfferOf(await fetch(url));
  const buyer = createChannelBuyer(accounts.buyer);
  const payer = toLowerHex(accounts.buyer.address);
  const pay = (ceiling: bigint, type = "voucher", parts: object = {}) =>
    buyer.pay(offer, ceiling, { type, config: { payer, ...parts } });
  /** Sends a request until the chain is followed. */
  async function send(headers: Record<string, string>, init: RequestInit = {}) {
    const deadline = performance.now() + 30_000;
    for (;;) {
      const answer = await fetch(url, { ...init, headers });
      if (answer.status !== 503 || performance.now() > deadline) return answer;
      await devnet.mine(1);
    }
  }
  return { devnet, channels, offer, buyer, payer, pay, send, url, runs: () => runs };
}

describe("a payload that asks for a refund", () => {
  it("has the answer of the public specification, and runs no handler", async () => {
    const { channels, devnet, pay, send, payer, runs } = await openScene();
    const config = channels.configOf({ salt: `0x${"00".repeat(32)}` });
    await channels.deposit(config, 10_000n);
    const channelId = channels.idOf(config);
    expect((await send(await pay(1_000n))).status).toBe(200);
    const corrected = await send(await pay(0n, "refund"));
    expect(corrected.status).toBe(402);
    expect(channelOfferOf(corrected).extra).toMatchObject({
      channelState: { chargedCumulativeAmount: "1000" },
    });
    const answer = await send(await pay(1_000n, "refund"), { method: "POST" });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(await answer.json()).toEqual({ message: "Refund acknowledged", channelId });
    expect(channelReceiptOf(answer)).toMatchObject({
      channelState: { channelId, balance: 1_000n, totalClaimed: 1_000n, refundNonce: 1n },
    });
    const header = answer.headers.get(headerName.paymentResponse) ?? "";
    const receipt: unknown = JSON.parse(Buffer.from(header, "base64").toString());
    expect(receipt).toMatchObject({
      success: true,
      payer,
      network: devnet.network,
      amount: "9000",
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    });
    expect(receipt).not.toHaveProperty("extra.chargedAmount");
    expect(runs()).toBe(1);
  });

  it("gets 503 while its outcome is not known, and 429 beyond the limit", async () => {
    const { channels, devnet, pay, send, url } = await openScene({ maxRefundsPerSigner: 1 });
    const config = channels.configOf({ salt: `0x${"00".repeat(32)}` });
    await channels.deposit(config, 10_000n);
    expect((await send(await pay(1_000n))).status).toBe(200);
    await devnet.setAutomine(false);
    const headers = await pay(1_000n, "refund");
    const first = await fetch(url, { headers, signal: AbortSignal.timeout(2_000) }).catch(() => 0);
    expect(first).toBe(0);
    expect((await fetch(url, { headers: await pay(2_000n) })).status).toBe(503);
    await devnet.setAutomine(true);
    expect((await send(headers)).status).toBe(200);
    expect((await send(await pay(2_000n))).status).toBe(402);
    await channels.deposit(config, 5_000n, { salt: `0x${"01".repeat(32)}` });
    // Until the deposit is seen, the question has the answer of the refund before.
    let limited: Response | undefined;
    await expect
      .poll(async () => {
        await devnet.mine(1);
        limited = await send(headers);
        return limited.status;
      })
      .toBe(429);
    expect(Number(limited?.headers.get("retry-after"))).toBeGreaterThan(80_000);
  });

  it("a payload that asks for a refund of a channel of former terms is served", async () => {
    const { channels, pay, send } = await openScene();
    const parts = { salt: `0x${"00".repeat(32)}`, withdrawDelay: 1_800 } as const;
    const config = channels.configOf(parts);
    await channels.deposit(config, 10_000n);
    const answer = await send(await pay(0n, "refund", { withdrawDelay: 1_800 }));
    expect(answer.status).toBe(200);
    expect(await channels.stateOf(config)).toMatchObject({ balance: 0n });
  });
});
