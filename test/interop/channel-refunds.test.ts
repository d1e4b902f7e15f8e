import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPayingFetch } from "@coinslot/client";
import {
  type ChannelFixture,
  createChannelFixture,
  type Devnet,
  type Listening,
  listen,
  placeChannels,
  startDevnet,
} from "@coinslot/devnet";
import { paymentMiddleware } from "@coinslot/express";
import { type CoinslotFacilitator, createFacilitator } from "@coinslot/facilitator";
import {
  type ChannelConfig,
  channelPayloadSchema,
  channelReceiptSchema,
  channelScheme,
} from "@coinslot/protocol";
import { x402Client } from "@x402/core/client";
import { BatchSettlementEvmScheme } from "@x402/evm/batch-settlement/client";
import { wrapFetchWithPayment } from "@x402/fetch";
import express from "express";
import { zeroHash } from "viem";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import * as z from "zod";
import { balanceOf } from "../support/balance.ts";

const deposited = 100_000n;
const price = 1_000n;
const patience = { timeout: 30_000, interval: 200 };

let devnet: Devnet;
let channels: ChannelFixture;
let facilitator: CoinslotFacilitator;
let server: Listening;
let url: string;
let folder: string;

beforeAll(async () => {
  devnet = await startDevnet({ chainId: 9745 });
  await placeChannels(devnet);
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 10_000_000n });
  channels = createChannelFixture(devnet);
});
afterAll(() => devnet?.stop());

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "coinslot-refunds-"));
  const { accounts, network, token, rpcUrl } = devnet;
  facilitator = createFacilitator({
    networks: [{ network, rpcUrls: [rpcUrl], relayer: accounts.relayer, finalAfter: 2 }],
    ledger: "sqlite::memory:",
    channels: { authorizer: { privateKey: accounts.deployer.privateKey } },
  });
  const terms = {
    scheme: channelScheme,
    network,
    payTo: accounts.seller.address,
    withdrawDelay: 1_800,
    price: { amount: `${price}`, asset: token, extra: { name: "USDT0", version: "1" } },
  } as const;
  const accepts = { ...terms, former: [{ withdrawDelay: 3_600 }] };
  const app = express();
  const gate = paymentMiddleware({ "GET /weather": { accepts } }, facilitator);
  app.use(gate);
  app.get("/weather", (_request, response) => void response.json({ forecast: "sun" }));
  await gate.ready();
  server = await listen(app);
  url = `${server.url}/weather`;
});
afterEach(async () => {
  await server?.close();
  await facilitator?.close();
  await rm(folder, { recursive: true, force: true });
});

const buyerHas = () => balanceOf(devnet, devnet.accounts.buyer.address);

/** Mines until the answer is 200: the watcher has read a block, and the deposit is deep enough. */
function buyAtLast(pay: typeof fetch) {
  return expect
    .poll(async () => {
      await devnet.mine(1);
      return (await pay(url).catch(() => undefined))?.status;
    }, patience)
    .toBe(200);
}

describe("a refund at our route", () => {
  it("is given to the released client of @x402/evm, in whole and in part", async () => {
    const config = channels.configOf({ salt: zeroHash, withdrawDelay: 1_800 });
    await channels.deposit(config, deposited);
    const { buyer } = devnet.accounts;
    const scheme = new BatchSettlementEvmScheme({
      address: buyer.address,
      signTypedData: (data) =>
        buyer.signTypedData(data as Parameters<typeof buyer.signTypedData>[0]),
      readContract: (call) =>
        devnet.client.readContract(call as Parameters<typeof devnet.client.readContract>[0]),
    });
    const client = new x402Client().setSpendControls(false).register(devnet.network, scheme);
    await buyAtLast(wrapFetchWithPayment(fetch, client));
    const before = await buyerHas();
    const part = await scheme.refund(url, { amount: "10000" });
    expect(part).toMatchObject({ success: true, amount: "10000", network: devnet.network });
    expect(await buyerHas()).toBe(before + 10_000n);
    let rest: Awaited<ReturnType<typeof scheme.refund>> | undefined;
    await expect
      .poll(async () => {
        await devnet.mine(1);
        rest = await scheme.refund(url).catch(() => undefined);
        return rest?.success;
      }, patience)
      .toBe(true);
    const left = deposited - 10_000n - price;
    expect(rest).toMatchObject({ amount: `${left}`, payer: expect.any(String) });
    expect(channelReceiptSchema.parse(rest?.extra).channelState).toMatchObject({
      balance: price,
      totalClaimed: price,
      refundNonce: 2n,
    });
    expect(await buyerHas()).toBe(before + 10_000n + left);
  });

  it("is given to our own buyer", async () => {
    let config: ChannelConfig | undefined;
    const pay = createPayingFetch({
      account: devnet.accounts.buyer,
      rpcUrls: { [devnet.network]: devnet.rpcUrl },
      channels: { file: join(folder, "channels.db") },
      fetch(input, init) {
        const header = new Headers(init?.headers).get("payment-signature");
        if (header !== null) config ??= configIn(header);
        return fetch(input, init);
      },
    });
    await buyAtLast(pay);
    if (config === undefined) throw new Error("No channel was named.");
    const { charged } = (await pay.listChannels())[0] ?? { charged: 0n };
    const before = await buyerHas();
    const { balance } = await channels.stateOf(config);
    expect(await pay.refundChannel(url)).toMatchObject([
      { state: "refunded", amount: balance - charged },
    ]);
    expect(await buyerHas()).toBe(before + balance - charged);
  });
});

const paymentSchema = z.object({ payload: channelPayloadSchema });

function configIn(header: string): ChannelConfig {
  const message: unknown = JSON.parse(Buffer.from(header, "base64").toString());
  return paymentSchema.parse(message).payload.channelConfig;
}
