import {
  type ChannelFixture,
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
import { createFacilitator } from "@coinslot/facilitator";
import {
  type ChannelConfig,
  channelContracts,
  channelReceiptSchema,
  channelScheme,
  toLowerHex,
} from "@coinslot/protocol";
import { x402Client } from "@x402/core/client";
import { BatchSettlementEvmScheme } from "@x402/evm/batch-settlement/client";
import { wrapFetchWithPayment } from "@x402/fetch";
import express from "express";
import { zeroHash } from "viem";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import * as z from "zod";
import { createPaperFacilitator } from "../../packages/express/src/testing/paper-facilitator.ts";
import { openChannelSeller } from "../../packages/facilitator/src/testing/channel-seller.ts";

const deposited = 100_000n;
const price = 1_000n;

const settlementSchema = z.object({
  success: z.boolean(),
  transaction: z.templateLiteral(["0x", z.string()]),
  amount: z.string(),
});

let devnet: Devnet;
let channels: ChannelFixture;
let lastDelay = 2_000;

function nextDelay(): number {
  lastDelay += 1;
  return lastDelay;
}

beforeAll(async () => {
  devnet = await startDevnet({ chainId: 9745 });
  await placeChannels(devnet);
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
  channels = createChannelFixture(devnet);
});
afterAll(() => devnet?.stop());

describe("@x402/fetch with the channels of @x402/evm", () => {
  let seller: Awaited<ReturnType<typeof openChannelSeller>>;
  let server: Listening;
  let config: ChannelConfig;
  let runs = 0;
  /** Statuses of the answers to paid requests. */
  let statuses: number[] = [];
  let losesNext = false;

  /** The released client, whose next paid answer may be lost. */
  function createPay(): typeof fetch {
    const { buyer } = devnet.accounts;
    const scheme = new BatchSettlementEvmScheme({
      address: buyer.address,
      signTypedData: (data) =>
        buyer.signTypedData(data as Parameters<typeof buyer.signTypedData>[0]),
      readContract: (call) =>
        devnet.client.readContract(call as Parameters<typeof devnet.client.readContract>[0]),
    });
    const client = new x402Client().setSpendControls(false).register(devnet.network, scheme);
    return wrapFetchWithPayment(async (input, init) => {
      const request = new Request(input, init);
      const answer = await fetch(request);
      if (!request.headers.has("PAYMENT-SIGNATURE")) return answer;
      statuses.push(answer.status);
      if (!losesNext || answer.status !== 200) return answer;
      losesNext = false;
      await answer.arrayBuffer();
      throw new TypeError("The connection was lost");
    }, client);
  }

  beforeEach(async () => {
    runs = 0;
    statuses = [];
    losesNext = false;
    const { accounts, network, token } = devnet;
    config = channels.configOf({ salt: zeroHash, withdrawDelay: 900 });
    seller = await openChannelSeller({
      url: "sqlite::memory:",
      network,
      contract: toLowerHex(channelContracts.settlement),
      receiverAuthorizer: config.receiverAuthorizer,
      async look(channelId) {
        if (channelId !== channels.idOf(config)) return undefined;
        const { pending, initiatedAt, ...state } = await channels.stateOf(config);
        const secure = state.balance - pending;
        return { ...state, withdrawRequestedAt: initiatedAt, secure };
      },
    });
    const accepts: ChannelPaymentOption = {
      scheme: channelScheme,
      network,
      payTo: accounts.seller.address,
      withdrawDelay: 900,
      price: { amount: `${price}`, asset: token, extra: { name: "USDT0", version: "1" } },
    };
    const facilitator = {
      ...withReservations(
        createPaperFacilitator({ networks: [network] }),
        createReservationStore(),
      ),
      channels: seller.sales,
    };
    const app = express();
    const gate = paymentMiddleware({ "GET /weather": { accepts } }, facilitator);
    app.use(gate);
    app.get("/weather", (_request, response) => {
      runs += 1;
      response.json({ forecast: "sun", runs });
    });
    await gate.ready();
    server = await listen(app);
  });
  afterEach(async () => {
    await server?.close();
    await seller?.close();
  });

  it("buys by a channel, is charged exactly, and is corrected after a lost answer", async () => {
    if ((await channels.stateOf(config)).balance === 0n) await channels.deposit(config, deposited);
    const pay = createPay();
    const url = `${server.url}/weather`;
    for (let count = 1; count <= 3; count += 1) {
      const answer = await pay(url);
      expect(await answer.json()).toEqual({ forecast: "sun", runs: count });
      expect(receiptOf(answer)).toMatchObject({
        chargedAmount: price,
        channelState: { balance: deposited, chargedCumulativeAmount: BigInt(count) * price },
      });
    }
    expect(statuses).toEqual([200, 200, 200]);

    losesNext = true;
    await expect(pay(url)).rejects.toThrow("The connection was lost");
    const corrected = await pay(url);
    expect(await corrected.json()).toEqual({ forecast: "sun", runs: 5 });
    expect(statuses).toEqual([200, 200, 200, 200, 402, 200]);
    expect(await seller.chargedOf(channels.idOf(config))).toBe(5n * price);
  });

  it("is corrected by a new client without a store, whose claims of ours the escrow then pays", async () => {
    if ((await channels.stateOf(config)).balance === 0n) await channels.deposit(config, deposited);
    const url = `${server.url}/weather`;
    await createPay()(url);
    const answer = await createPay()(url);
    expect(answer.status).toBe(200);
    expect(statuses).toEqual([200, 402, 200]);
    const charged = 2n * price;
    expect(await seller.chargedOf(channels.idOf(config))).toBe(charged);
    const row = await seller.ledger.db.selectFrom("channels").selectAll().executeTakeFirstOrThrow();
    const { signature } = row;
    if (signature === null) throw new Error("No voucher");
    const voucher = { channel: config, maxClaimableAmount: charged };
    await channels.claimSigned([{ voucher, signature, totalClaimed: charged }]);
    expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: charged });
  });
});

describe("@x402/fetch with the channels of @x402/evm, at a facilitator that watches the chain", () => {
  it("buys by a channel that was opened on the chain", async () => {
    const { accounts, network, token, rpcUrl } = devnet;
    const config = channels.configOf({ salt: zeroHash, withdrawDelay: 1_800 });
    await channels.deposit(config, deposited);
    const facilitator = createFacilitator({
      networks: [{ network, rpcUrls: [rpcUrl], relayer: accounts.relayer }],
      ledger: "sqlite::memory:",
      channels: { authorizer: { privateKey: accounts.deployer.privateKey } },
    });
    const app = express();
    const gate = paymentMiddleware(
      {
        "GET /weather": {
          accepts: {
            scheme: channelScheme,
            network,
            payTo: accounts.seller.address,
            withdrawDelay: 1_800,
            price: { amount: `${price}`, asset: token, extra: { name: "USDT0", version: "1" } },
          },
        },
      },
      facilitator,
    );
    app.use(gate);
    app.get("/weather", (_request, response) => void response.json({ forecast: "sun" }));
    await gate.ready();
    const server = await listen(app);
    try {
      const { buyer } = accounts;
      const scheme = new BatchSettlementEvmScheme({
        address: buyer.address,
        signTypedData: (data) =>
          buyer.signTypedData(data as Parameters<typeof buyer.signTypedData>[0]),
        readContract: (call) =>
          devnet.client.readContract(call as Parameters<typeof devnet.client.readContract>[0]),
      });
      const client = new x402Client().setSpendControls(false).register(network, scheme);
      const pay = wrapFetchWithPayment(fetch, client);
      // Until the watcher has read a block, and the deposit is deep enough.
      await expect
        .poll(async () => {
          await devnet.mine(1);
          return (await pay(`${server.url}/weather`)).status;
        })
        .toBe(200);
      const answer = await pay(`${server.url}/weather`);
      expect(receiptOf(answer)).toMatchObject({
        channelState: { balance: deposited, chargedCumulativeAmount: 2n * price },
      });
    } finally {
      await server.close();
      await facilitator.close();
    }
  });
});

describe("@x402/fetch with the channels of @x402/evm, from nothing", () => {
  const minDeposit = 5n * price;
  let facilitator: ReturnType<typeof createFacilitator>;
  let server: Listening;
  let config: ChannelConfig;
  let statuses: number[] = [];
  let types: unknown[] = [];
  let loses = false;
  let fails = false;
  let runs = 0;

  beforeEach(async () => {
    const { accounts, network, token, rpcUrl } = devnet;
    statuses = [];
    types = [];
    loses = false;
    fails = false;
    runs = 0;
    // Another delay is another channel.
    config = channels.configOf({ salt: zeroHash, withdrawDelay: nextDelay() });
    facilitator = createFacilitator({
      networks: [{ network, rpcUrls: [rpcUrl], relayer: accounts.relayer }],
      ledger: "sqlite::memory:",
      // A deposit of five prices is worth its gas.
      channels: { authorizer: { privateKey: accounts.deployer.privateKey }, claimCost: 100n },
    });
    const app = express();
    const gate = paymentMiddleware(
      {
        "GET /weather": {
          accepts: {
            scheme: channelScheme,
            network,
            payTo: accounts.seller.address,
            withdrawDelay: config.withdrawDelay,
            minDeposit: `${minDeposit}`,
            price: { amount: `${price}`, asset: token, extra: { name: "USDT0", version: "1" } },
          },
        },
      },
      facilitator,
    );
    app.use(gate);
    app.get("/weather", (_request, response) => {
      runs += 1;
      if (fails) response.status(500);
      response.json({ forecast: "sun", runs });
    });
    await gate.ready();
    server = await listen(app);
    // Until the watcher has read a block, channels are closed.
    await expect
      .poll(async () => {
        await devnet.mine(1);
        const metric = await facilitator.metrics.getSingleMetricAsString(
          "coinslot_channels_watched_block",
        );
        return /^coinslot_channels_watched_block\{.*\} [1-9]/m.test(metric);
      })
      .toBe(true);
  });
  afterEach(async () => {
    await server?.close();
    await facilitator?.close();
  });

  /** The released client, of a process without a memory. */
  function createPay(): typeof fetch {
    const { buyer } = devnet.accounts;
    const scheme = new BatchSettlementEvmScheme({
      address: buyer.address,
      signTypedData: (data) =>
        buyer.signTypedData(data as Parameters<typeof buyer.signTypedData>[0]),
      readContract: (call) =>
        devnet.client.readContract(call as Parameters<typeof devnet.client.readContract>[0]),
    });
    const client = new x402Client().setSpendControls(false).register(devnet.network, scheme);
    return wrapFetchWithPayment(async (input, init) => {
      const request = new Request(input, init);
      const header = request.headers.get("PAYMENT-SIGNATURE");
      if (header === null) return fetch(request);
      const message: unknown = JSON.parse(Buffer.from(header, "base64").toString());
      types.push(Reflect.get(Object(Reflect.get(Object(message), "payload")), "type"));
      const mining = setInterval(() => void devnet.mine(1), 200);
      try {
        const answer = await fetch(request);
        statuses.push(answer.status);
        if (!loses || answer.status !== 200) return answer;
        loses = false;
        await answer.arrayBuffer();
        throw new TypeError("The connection was lost");
      } finally {
        clearInterval(mining);
      }
    }, client);
  }

  it("opens a channel by its payload, buys by vouchers, and tops it up", async () => {
    const pay = createPay();
    const url = `${server.url}/weather`;
    const first = await pay(url);
    expect(await first.json()).toEqual({ forecast: "sun", runs: 1 });
    const receipt = receiptOf(first);
    expect(receipt).toMatchObject({
      chargedAmount: price,
      channelState: { balance: minDeposit, chargedCumulativeAmount: price },
    });
    const settlement = settlementOf(first);
    expect(settlement).toMatchObject({ success: true, amount: `${minDeposit}` });
    const { status } = await devnet.client.getTransactionReceipt({ hash: settlement.transaction });
    expect(status).toBe("success");
    for (let count = 2; count <= 6; count += 1) {
      expect(await (await pay(url)).json()).toEqual({ forecast: "sun", runs: count });
    }
    expect(types).toEqual(["deposit", "voucher", "voucher", "voucher", "voucher", "deposit"]);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 200]);
    expect(await channels.stateOf(config)).toMatchObject({ balance: 2n * minDeposit });
  });

  it("is corrected after a lost answer to its deposit, and deposits once", async () => {
    const pay = createPay();
    const url = `${server.url}/weather`;
    loses = true;
    await expect(pay(url)).rejects.toThrow("The connection was lost");
    const answer = await pay(url);
    expect(answer.status).toBe(200);
    expect(await channels.stateOf(config)).toMatchObject({ balance: minDeposit });
    expect(receiptOf(answer)).toMatchObject({
      channelState: { balance: minDeposit, chargedCumulativeAmount: 2n * price },
    });
  });

  it("keeps its deposit where the handler fails, and is charged nothing", async () => {
    const pay = createPay();
    const url = `${server.url}/weather`;
    fails = true;
    expect((await pay(url)).status).toBe(500);
    expect(await channels.stateOf(config)).toMatchObject({ balance: minDeposit });
    fails = false;
    const answer = await pay(url);
    expect(answer.status).toBe(200);
    expect(receiptOf(answer)).toMatchObject({
      channelState: { balance: minDeposit, chargedCumulativeAmount: price },
    });
  });
});

function receiptOf(answer: Response) {
  const header = answer.headers.get("PAYMENT-RESPONSE") ?? "";
  const message: unknown = JSON.parse(Buffer.from(header, "base64").toString());
  const extra: unknown = Reflect.get(Object(message), "extra");
  return channelReceiptSchema.parse(extra);
}

function settlementOf(answer: Response) {
  const header = answer.headers.get("PAYMENT-RESPONSE") ?? "";
  return settlementSchema.parse(JSON.parse(Buffer.from(header, "base64").toString()));
}
