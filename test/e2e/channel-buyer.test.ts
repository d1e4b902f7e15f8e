import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPayingFetch, type PayingFetch, paymentOf } from "@coinslot/client";
import {
  createChannelFixture,
  type Devnet,
  type Listening,
  listen,
  placeChannels,
  startDevnet,
} from "@coinslot/devnet";
import {
  type ChannelPaymentOption,
  createReservationStore,
  paymentMiddleware,
  withReservations,
} from "@coinslot/express";
import {
  type ChannelConfig,
  channelContracts,
  channelIdOf,
  channelScheme,
  toLowerHex,
} from "@coinslot/protocol";
import express from "express";
import { afterAll, beforeAll, expect, it } from "vitest";
import { lanesOf } from "../../packages/client/src/channels/choose-channel.ts";
import { createPaperFacilitator } from "../../packages/express/src/testing/paper-facilitator.ts";
import { openChannelSeller } from "../../packages/facilitator/src/testing/channel-seller.ts";

const price = 1000n;

let devnet: Devnet;
let folder: string;
let seller: Awaited<ReturnType<typeof openChannelSeller>>;
let server: Listening;
/** The buyer's channel, which a deposit has opened. */
let config: ChannelConfig | undefined;
let runs = 0;
/** Statuses of the answers to paid requests, and the number of answers still to be lost. */
const statuses: number[] = [];
let toLose = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "coinslot-channel-buyer-"));
  devnet = await startDevnet({ chainId: 9745 });
  await placeChannels(devnet);
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
  const { accounts, network, token } = devnet;
  const channels = createChannelFixture(devnet);
  const receiverAuthorizer = toLowerHex(accounts.deployer.address);
  seller = await openChannelSeller({
    url: "sqlite::memory:",
    network,
    contract: toLowerHex(channelContracts.settlement),
    receiverAuthorizer,
    async look(channelId) {
      if (config === undefined || channelIdOf(config, { network }) !== channelId) return undefined;
      const { pending, initiatedAt, ...state } = await channels.stateOf(config);
      return { ...state, withdrawRequestedAt: initiatedAt, secure: state.balance - pending };
    },
  });
  const accepts: ChannelPaymentOption = {
    scheme: channelScheme,
    network,
    payTo: accounts.seller.address,
    withdrawDelay: 900,
    price: { amount: `${price}`, asset: token, extra: { name: "USDT0", version: "1" } },
  };
  const paper = createPaperFacilitator({ networks: [network] });
  const facilitator = {
    ...withReservations(paper, createReservationStore()),
    channels: seller.sales,
  };
  const gate = paymentMiddleware({ "GET /weather": { accepts } }, facilitator);
  const app = express().use(gate);
  app.get("/weather", (_request, response) => {
    runs += 1;
    response.json({ runs });
  });
  await gate.ready();
  server = await listen(app);
  const [lane] = lanesOf({
    offer: {
      network,
      amount: price,
      token: toLowerHex(token),
      receiver: toLowerHex(accounts.seller.address),
      receiverAuthorizer,
      withdrawDelay: 900,
      domain: { name: "USDT0", version: "1" },
      transferMethod: "eip3009",
    },
    payer: accounts.buyer.address,
    origin: new URL(server.url).origin,
    lanes: 1,
  });
  config = lane.config;
  await channels.deposit(lane.config, 100_000n);
});
afterAll(async () => {
  await server?.close();
  await seller?.close();
  await devnet?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** A process of the buyer, as far as it can be told from its file. */
function createBuyer(): PayingFetch {
  return createPayingFetch({
    account: devnet.accounts.buyer,
    rpcUrls: { [devnet.network]: devnet.rpcUrl },
    channels: { file: join(folder, "channels.db") },
    wait: async () => {},
    fetch: async (input, init) => {
      const answer = await fetch(input, init);
      if (!new Headers(init?.headers).has("payment-signature")) return answer;
      statuses.push(answer.status);
      if (toLose === 0 || !answer.ok) return answer;
      toLose -= 1;
      await answer.arrayBuffer();
      throw new TypeError("The connection was lost");
    },
  });
}

it("our buyer gets an answer that our seller has charged again, free, and then goes on", async () => {
  const url = `${server.url}/weather`;
  const pay = createBuyer();
  expect(await (await pay(url)).json()).toEqual({ runs: 1 });
  toLose = 1;
  const again = await pay(url);
  expect(paymentOf(again)?.state).toBe("settled");
  expect(await again.json()).toEqual({ runs: 2 });
  expect(statuses).toEqual([200, 200, 200]);
  expect((await pay.listChannels())[0]).toMatchObject({ ceiling: 2n * price, charged: 2n * price });
});

it("our buyer is corrected by our seller when all answers of a call were lost", async () => {
  const url = `${server.url}/weather`;
  const pay = createBuyer();
  const before = runs;
  toLose = 5;
  await expect(pay(url)).rejects.toMatchObject({ code: "outcome_unclear" });
  expect(runs).toBe(before + 1);
  statuses.length = 0;
  expect(await (await pay(url)).json()).toEqual({ runs: before + 2 });
  expect(statuses).toEqual([402, 200]);
  const [channel] = await pay.listChannels();
  expect(channel).toMatchObject({ charged: BigInt(runs) * price, ceiling: BigInt(runs) * price });
  expect(await seller.chargedOf(channel?.id ?? "0x")).toBe(BigInt(runs) * price);
});
