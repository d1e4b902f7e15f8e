import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPayingFetch } from "@coinslot/client";
import {
  createChannelFixture,
  type Devnet,
  type Listening,
  listen,
  placeChannels,
  startDevnet,
} from "@coinslot/devnet";
import { paymentMiddleware } from "@coinslot/express";
import { createFacilitator } from "@coinslot/facilitator";
import { channelScheme, decodePaymentRequired, headerName } from "@coinslot/protocol";
import express from "express";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  signDepositRequest,
  wireOf,
} from "../../packages/facilitator/src/testing/channel-deposits.ts";

const price = 1_000n;

let devnet: Devnet;
let folder: string;
let facilitator: ReturnType<typeof createFacilitator>;
let server: Listening;
let runs = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "coinslot-deposits-"));
  devnet = await startDevnet({ chainId: 9745, blockTimeSeconds: 1 });
  await placeChannels(devnet);
  const { accounts, network, token, rpcUrl } = devnet;
  await devnet.mint({ to: accounts.buyer.address, amount: 1_000_000n });
  facilitator = createFacilitator({
    networks: [{ network, rpcUrls: [rpcUrl], relayer: accounts.relayer }],
    ledger: "sqlite::memory:",
    channels: { authorizer: { privateKey: accounts.deployer.privateKey } },
  });
  const accepts = {
    scheme: channelScheme,
    network,
    payTo: accounts.seller.address,
    withdrawDelay: 900,
    price: { amount: `${price}`, asset: token, extra: { name: "USDT0", version: "1" } },
  } as const;
  const gate = paymentMiddleware({ "GET /weather": { accepts } }, facilitator);
  const app = express().use(gate);
  app.get("/weather", (_request, response) => {
    runs += 1;
    response.json({ runs });
  });
  await gate.ready();
  server = await listen(app);
});
afterAll(async () => {
  await server?.close();
  await facilitator?.close();
  await devnet?.stop();
  await rm(folder, { recursive: true, force: true });
});

it("our buyer opens its channel by a payload at our seller, and tops it up", async () => {
  const pay = createPayingFetch({
    account: devnet.accounts.buyer,
    rpcUrls: { [devnet.network]: devnet.rpcUrl },
    channels: { file: join(folder, "channels.db") },
  });
  for (let count = 1; count <= 11; count += 1) {
    const answer = await pay(`${server.url}/weather`);
    expect(await answer.json()).toEqual({ runs: count });
  }
  const [channel] = await pay.listChannels();
  expect(channel).toMatchObject({ charged: 11n * price, balance: 20n * price });
});

it("a deposit below the minimum is refused by its reason, and one in time is bought by", async () => {
  const channels = createChannelFixture(devnet);
  const config = channels.configOf();
  const before = runs;
  const url = `${server.url}/weather`;
  const offer = decodePaymentRequired(
    (await fetch(url)).headers.get(headerName.paymentRequired) ?? "",
  );
  const [accepted] = offer.accepts;
  const headerOf = async (amount: bigint) => {
    const request = await signDepositRequest({ devnet, channels }, config, {
      amount,
      ceiling: price,
    });
    const message = { x402Version: 2, accepted: accepted?.requirements, payload: wireOf(request) };
    return Buffer.from(JSON.stringify(message)).toString("base64");
  };
  const ask = (header: string) =>
    fetch(url, { headers: { [headerName.paymentSignature]: header } });
  const refused = await ask(await headerOf(10n * price - 1n));
  expect(refused.status).toBe(402);
  expect(await refused.json()).toMatchObject({
    error: "invalid_batch_settlement_evm_deposit_below_min_deposit",
  });
  expect(await channels.stateOf(config)).toMatchObject({ balance: 0n });
  const header = await headerOf(10n * price);
  const bought = await ask(header);
  expect(bought.status).toBe(200);
  // Its answer has arrived: the same payload buys nothing more, and deposits nothing more.
  expect((await ask(header)).status).toBe(402);
  expect(runs).toBe(before + 1);
  expect(await channels.stateOf(config)).toMatchObject({ balance: 10n * price });
});
