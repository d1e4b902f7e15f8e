import { withDatabase } from "@coinslot/devnet";
import {
  CallerGoneError,
  CallerLimitedError,
  type ChannelConfig,
  channelContracts,
  channelSettlementAbi,
  type Hex,
  toLowerHex,
} from "@coinslot/protocol";
import { parseEventLogs, zeroAddress } from "viem";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { type HostingDevnet, startHostingDevnet } from "../../testing/hosting-devnet.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { engines } from "../../testing/settling-devnet.ts";

const patience = { timeout: 90_000, interval: 50 };
const salt: Hex = `0x${"07".repeat(32)}`;
const inVain = "invalid_batch_settlement_evm_deposit_transaction_failed";

describe.each(engines)("callers and buyers that take from others, on %s", (engine) => {
  let here: HostingDevnet;

  beforeEach(async () => {
    here = await startHostingDevnet(engine);
  });
  afterEach(() => here?.stop());

  /**
   * Starts a facilitator that asks its node through a proxy, which counts the calls of a method.
   */
  async function startCounting(method: string) {
    const seen = { count: 0 };
    const node = await startNodeProxy(here.devnet.rpcUrl, (call, ask) => {
      if (call.method === method) seen.count += 1;
      return ask();
    });
    onTestFinished(node.close);
    const network = { rpcUrls: [node.url] };
    return { seen, start: (more = {}) => here.start({}, { network: { ...network, ...more } }) };
  }

  /** The transactions that have paid claims, each with the ids of its channels. */
  async function claims(): Promise<Hex[][]> {
    const { settlement: address } = channelContracts;
    const logs = await here.devnet.client.getLogs({ address, fromBlock: 0n });
    const found = new Map<Hex, Hex[]>();
    const parsed = parseEventLogs({ abi: channelSettlementAbi, logs, eventName: "Claimed" });
    for (const { transactionHash, args } of parsed) {
      found.set(transactionHash, [...(found.get(transactionHash) ?? []), args.channelId]);
    }
    return [...found.values()].toSorted((a, b) => a.length - b.length);
  }

  async function openAll(count: number): Promise<ChannelConfig[]> {
    const opened: ChannelConfig[] = [];
    for (let each = 0; each < count; each += 1) opened.push(await here.open(9_000n));
    return opened;
  }

  const pending = async () => (await here.devnet.client.getTxpoolStatus()).pending;

  it("a withdrawal that leaves what is claimed sends no row alone", async () => {
    const { channels, devnet } = here;
    const facilitator = await here.start();
    const opened = await openAll(3);
    const [leaving] = opened;
    if (leaving === undefined) throw new Error("No channel.");
    await channels.withdraw(leaving, 5_000n);
    const { timestamp } = await devnet.client.getBlock();
    await devnet.client.setNextBlockTimestamp({ timestamp: timestamp + 850n });
    await devnet.mine(1);
    const rows = await Promise.all(opened.map((config) => channels.rowOf(config, 4_000n)));
    expect(await here.settle(facilitator, here.claim(rows))).toMatchObject({ state: "done" });
    expect(await claims()).toHaveLength(1);
  });

  it("vouchers that code accepts share no transaction with others", async () => {
    const { channels, devnet } = here;
    const { buyer } = devnet.accounts;
    const facilitator = await here.start();
    const opened = await openAll(2);
    const payer = toLowerHex(await devnet.deploySmartAccount({ owner: buyer.address }));
    await devnet.mint({ to: payer, amount: 9_000n });
    const byCode = channels.configOf({ payer, payerAuthorizer: zeroAddress });
    await here.fund(byCode, 9_000n);
    const rows = await Promise.all(
      [...opened, byCode].map((config) => channels.rowOf(config, 4_000n)),
    );
    expect(await here.settle(facilitator, here.claim(rows))).toMatchObject({ state: "done" });
    expect(await claims()).toEqual([[channels.idOf(byCode)], opened.map(channels.idOf)]);
  });

  it("a caller without gas costs no trial", async () => {
    const { channels, devnet } = here;
    const { seen, start } = await startCounting("eth_call");
    const facilitator = await start();
    const config = await here.open(9_000n);
    const rows = await Promise.all(
      Array.from({ length: 50 }, (_, index) => channels.rowOf(config, BigInt(index + 1))),
    );
    await withDatabase(here.ledger.url, ({ execute }) =>
      execute(
        `insert into caller_gas (id, network, caller, gas, created_at)
         values ('1', '${devnet.network}', 'shop', 59000000, ${Date.now()})`,
      ),
    );
    const before = seen.count;
    const asked = here.settle(facilitator, here.claim(rows));
    await expect(asked).rejects.toThrow(CallerLimitedError);
    expect(seen.count - before).toBeLessThan(10);
  });

  it("a flood of a caller's claims leaves places to other callers and to payments", async () => {
    const { channels, devnet } = here;
    const facilitator = await here.start();
    const { deployer } = devnet.accounts;
    const config = await here.open(9_000n);
    const others = await here.open(9_000n, { receiver: toLowerHex(deployer.address) });
    const rows = await Promise.all(
      Array.from({ length: 12 }, (_, index) => channels.rowOf(config, BigInt(index + 1))),
    );
    const row = await channels.rowOf(others, 4_000n);
    const payment = await here.pay();
    await devnet.setAutomine(false);
    const flood = rows.map((each) => here.settle(facilitator, here.claim([each])));
    for (const each of flood) each.catch(() => undefined);
    // A quarter of sixteen places.
    await vi.waitFor(async () => expect(await pending()).toBe(4), patience);
    const asking = { caller: "kiosk", payTo: deployer.address };
    const claimed = here.settle(facilitator, here.claim([row]), asking);
    await vi.waitFor(async () => expect(await pending()).toBe(5), patience);
    const settled = facilitator.settle(payment.paymentPayload, payment.paymentRequirements);
    await vi.waitFor(async () => expect(await pending()).toBe(6), patience);
    await devnet.setAutomine(true);
    await devnet.mine(1);
    expect(await claimed).toMatchObject({ state: "done" });
    expect(await settled).toMatchObject({ success: true });
    // Those that found no place in their time are unavailable.
    await Promise.allSettled(flood);
  });

  it("requests that wait for one call share its questions to a node", async () => {
    const { channels, devnet } = here;
    const { seen, start } = await startCounting("eth_getTransactionReceipt");
    const facilitator = await start({ serveAfter: 2 });
    const rows = [await channels.rowOf(await here.open(9_000n), 4_000n)];
    const first = here.settle(facilitator, here.claim(rows));
    await vi.waitFor(async () => expect(await claims()).toHaveLength(1), patience);
    const before = seen.count;
    // Asked after each look that found no end.
    let looks = 0;
    const isGone = () => {
      looks += 1;
      return false;
    };
    const ask = () => here.settle(facilitator, here.claim(rows), { isGone });
    const many = Array.from({ length: 100 }, ask);
    await vi.waitFor(() => expect(looks).toBeGreaterThan(500), patience);
    expect(seen.count - before).toBeLessThan(looks / 5);
    await devnet.mine(2);
    const ended = await Promise.all([first, ...many]);
    expect(new Set(ended.map(({ state }) => state))).toEqual(new Set(["done"]));
  });

  it("a deposit of a payer with code takes the gas that its transaction may use", async () => {
    const { channels, devnet } = here;
    const { buyer } = devnet.accounts;
    const facilitator = await here.start();
    await devnet.delegate(buyer, await devnet.deploySmartAccount({ owner: buyer.address }));
    const config = channels.configOf();
    const payload = await here.deposit(config);
    expect(await here.settle(facilitator, payload, { config })).toMatchObject({ state: "done" });
    const rows = await withDatabase(here.ledger.url, ({ read }) =>
      read("select gas from caller_gas"),
    );
    expect(rows).toHaveLength(1);
    expect(Number(rows[0]?.gas)).toBeGreaterThan(400_000);
  });

  it("a deposit of another amount under one nonce is not the one that was executed", async () => {
    const { channels } = here;
    const facilitator = await here.start();
    const config = channels.configOf();
    const small = await here.deposit(config, { amount: 2_000n, salt });
    expect(await here.settle(facilitator, small, { config })).toMatchObject({ state: "done" });
    const large = await here.deposit(config, { amount: 20_000n, salt });
    expect(await here.settle(facilitator, large, { config })).toMatchObject({
      state: "refused",
      reason: inVain,
    });
  });

  it("a deposit that was used elsewhere costs its search thirty times a minute", async () => {
    const { channels } = here;
    const facilitator = await here.start();
    const config = channels.configOf();
    await here.fund(config, 1_000n, { salt });
    const other = await here.deposit(config, { amount: 20_000n, salt });
    const ask = () => here.settle(facilitator, other, { config });
    for (let count = 0; count < 30; count += 1)
      expect(await ask()).toMatchObject({ reason: inVain });
    await expect(ask()).rejects.toThrow(CallerLimitedError);
  });

  it("refunds and settles end at their own depth, also where another request asks", async () => {
    const { channels, devnet } = here;
    const serveAfter = (amount: bigint) => (amount > 5_000n ? 2 : 0);
    const facilitator = await here.start({}, { network: { serveAfter } });
    const config = await here.open(9_000n);
    for (const each of [config, await here.open(9_000n, { salt })]) {
      const claim = here.claim([await channels.rowOf(each, 3_000n)]);
      expect(await here.settle(facilitator, claim)).toMatchObject({ state: "done" });
    }
    const countOpen = () =>
      withDatabase(here.ledger.url, ({ read }) =>
        read("select id from transactions where state = 'open'"),
      );
    /** Sends a call, and leaves once it is in a block that is not deep enough. */
    const sendAndLeave = async (payload: object) => {
      const before = await devnet.client.getBlockNumber();
      let isLeaving = false;
      const asked = here.settle(facilitator, payload, { isGone: () => isLeaving });
      const left = expect(asked).rejects.toThrow(CallerGoneError);
      await vi.waitFor(async () => {
        expect(await devnet.client.getBlockNumber({ cacheTime: 0 })).toBe(before + 1n);
        expect(await countOpen()).toEqual([]);
      }, patience);
      isLeaving = true;
      await left;
    };
    const settle = { type: "settle", receiver: config.receiver, token: devnet.token };
    await sendAndLeave(settle);
    let looks = 0;
    const isGone = () => {
      looks += 1;
      return looks > 5;
    };
    const again = here.settle(facilitator, settle, { isGone });
    await expect(again).rejects.toThrow(CallerGoneError);
    await devnet.mine(2);
    const settled = { state: "done", amount: 6_000n };
    expect(await here.settle(facilitator, settle)).toMatchObject(settled);
    const refund = await here.refund(config, 3_000n, { amount: 5_500n });
    await sendAndLeave(refund);
    const small = await here.refund(config, 3_000n, { amount: 1n, refundNonce: 1n });
    const busy = "invalid_batch_settlement_evm_channel_busy";
    expect(await here.settle(facilitator, small)).toMatchObject({ reason: busy });
    await devnet.mine(2);
    const refunded = { state: "done", amount: 5_500n };
    expect(await here.settle(facilitator, refund)).toMatchObject(refunded);
  });
});
