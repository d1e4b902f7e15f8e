import { encodeAbiParameters, parseAbiParameters, toFunctionSelector } from "viem";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import { type HostingDevnet, startHostingDevnet } from "../../testing/hosting-devnet.ts";
import { type ChannelLie, lieAboutChannels } from "../../testing/lying-escrow.ts";
import { type NodeAnswer, type NodeCall, startNodeProxy } from "../../testing/node-proxy.ts";
import { type Fault, fail } from "../../testing/silent-node.ts";

const config = "(address,address,address,address,address,uint40,bytes32)";
const tried = [
  toFunctionSelector("settle(address,address)"),
  toFunctionSelector(`claim(((${config},uint128),bytes,uint128)[])`),
];
const receivers = toFunctionSelector("receivers(address,address)");
type Sums = readonly [claimed: bigint, settled: bigint];

describe("a caller's channels behind two nodes, the first of which reverts trials", () => {
  let here: HostingDevnet;
  let facilitator: CoinslotFacilitator;
  let lies: number;

  beforeEach(async () => {
    lies = 0;
    here = await startHostingDevnet("sqlite");
    const { rpcUrl } = here.devnet;
    const liar = await startNodeProxy(rpcUrl, async ({ method, params }, ask) => {
      const text = JSON.stringify(params);
      if (method !== "eth_call" || !tried.some((each) => text.includes(each))) return ask();
      lies += 1;
      return { error: { code: 3, message: "execution reverted", data: "0x" } };
    });
    onTestFinished(liar.close);
    facilitator = await here.start({}, { network: { rpcUrls: [liar.url, rpcUrl] } });
  });
  afterEach(() => here?.stop());

  it.each([true, false])(
    "are claimed, also by a signature of the caller's: %s",
    async (isSigned) => {
      const { channels } = here;
      const opened = [await here.open(9_000n), await here.open(9_000n)];
      const rows = await Promise.all(opened.map((each) => channels.rowOf(each, 4_000n)));
      const claim = here.claim(rows, isSigned ? await channels.signBatch(rows) : undefined);
      expect(await here.settle(facilitator, claim)).toMatchObject({ state: "done" });
      expect(lies).toBeGreaterThan(0);
    },
  );

  it("are settled", async () => {
    const { channels, devnet } = here;
    const row = await channels.rowOf(await here.open(9_000n), 4_000n);
    expect(await here.settle(facilitator, here.claim([row]))).toMatchObject({ state: "done" });
    lies = 0;
    const receiver = devnet.accounts.seller.address;
    const settle = { type: "settle", receiver, token: devnet.token };
    expect(await here.settle(facilitator, settle)).toMatchObject({ state: "done", amount: 4_000n });
    expect(lies).toBeGreaterThan(0);
  });

  it("have a bad row refused, by the words of the first node", async () => {
    const row = await here.channels.rowOf(await here.open(2_000n), 4_000n);
    expect(await here.settle(facilitator, here.claim([row]))).toMatchObject({
      state: "refused",
      reason: "invalid_batch_settlement_evm_claim_simulation_failed",
    });
  });
});

describe("a caller's channels behind two nodes, one of which lies about sums", () => {
  let here: HostingDevnet;
  let facilitator: CoinslotFacilitator;
  let lies: [ChannelLie, ChannelLie];
  /** What a node returns as claimed and settled of each receiver. */
  let owes: [Sums | undefined, Sums | undefined];
  let fault: Fault | undefined;
  let now: number;

  beforeEach(async () => {
    lies = [undefined, undefined];
    owes = [undefined, undefined];
    fault = undefined;
    now = Date.now();
    here = await startHostingDevnet("sqlite");
    const { rpcUrl } = here.devnet;
    const nodes = [
      await startNodeProxy(rpcUrl, (call, ask) => lie(call, ask, 0)),
      await startNodeProxy(rpcUrl, (call, ask) => fail(fault, call, () => lie(call, ask, 1))),
    ];
    onTestFinished(() => Promise.all(nodes.map((node) => node.close())).then(() => {}));
    const rpcUrls = nodes.map(({ url }) => url);
    facilitator = await here.start({}, { network: { rpcUrls }, now: () => now });
  });
  afterEach(() => here?.stop());

  async function lie(call: NodeCall, ask: () => Promise<NodeAnswer>, node: 0 | 1) {
    const sums = owes[node];
    const isAsked = call.method === "eth_call" && JSON.stringify(call.params).includes(receivers);
    if (!isAsked || sums === undefined) return lieAboutChannels(call, ask, lies[node]);
    return { result: encodeAbiParameters(parseAbiParameters("uint128, uint128"), sums) };
  }

  const transactions = () => here.devnet.client.getTransactionCount(here.devnet.accounts.relayer);

  it.each([true, false])(
    "are claimed where the first one shows all as paid, also by a signature of the caller's: %s",
    async (isSigned) => {
      const { channels } = here;
      const opened = [await here.open(9_000n), await here.open(9_000n)];
      const rows = await Promise.all(opened.map((each) => channels.rowOf(each, 4_000n)));
      const claim = here.claim(rows, isSigned ? await channels.signBatch(rows) : undefined);
      lies[0] = { totalClaimed: 4_000n };
      expect(await here.settle(facilitator, claim)).toMatchObject({ state: "done" });
      for (const config of opened) {
        expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 4_000n });
      }
    },
  );

  it("are claimed where the first one shows one of two as paid", async () => {
    const { channels } = here;
    const opened = [await here.open(9_000n), await here.open(9_000n)];
    const rows = await Promise.all(opened.map((each) => channels.rowOf(each, 4_000n)));
    const ids = opened.slice(1).map((config) => channels.idOf(config));
    lies[0] = { ids, totalClaimed: 4_000n };
    expect(await here.settle(facilitator, here.claim(rows))).toMatchObject({ state: "done" });
    for (const config of opened) {
      expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 4_000n });
    }
  });

  it("are claimed where the first one shows all as paid, and the other is silent", async () => {
    const { channels } = here;
    const config = await here.open(9_000n);
    const claim = here.claim([await channels.rowOf(config, 4_000n)]);
    lies[0] = { totalClaimed: 4_000n };
    fault = "refuses";
    expect(await here.settle(facilitator, claim)).toMatchObject({ state: "done" });
    expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 4_000n });
  });

  it.each<["lies" | "is silent"]>([["lies"], ["is silent"]])(
    "cost a claim each ten minutes at most where the second one %s about a paid sum",
    async (how) => {
      const claim = here.claim([await here.channels.rowOf(await here.open(9_000n), 4_000n)]);
      const before = await transactions();
      const first = await here.settle(facilitator, claim);
      expect(first).toMatchObject({ state: "done" });
      if (how === "lies") lies[1] = { totalClaimed: 0n };
      else fault = "refuses";
      expect(await here.settle(facilitator, claim)).toEqual(first);
      expect((await transactions()) - before).toBe(1);
      now += 600_001;
      const later = await here.settle(facilitator, claim);
      expect(later).toMatchObject({ state: "done" });
      expect(await here.settle(facilitator, claim)).toEqual(later);
      expect((await transactions()) - before).toBe(2);
      [lies[1], fault] = [undefined, undefined];
      now += 600_001;
      expect(await here.settle(facilitator, claim)).toEqual(later);
      expect((await transactions()) - before).toBe(2);
    },
  );

  it("are claimed where the first one showed a refused row as paid afterwards", async () => {
    const { channels } = here;
    const [good, bad] = [await here.open(9_000n), await here.open(2_000n)];
    const rows = [await channels.rowOf(good, 4_000n), await channels.rowOf(bad, 4_000n)];
    expect(await here.settle(facilitator, here.claim(rows))).toMatchObject({ state: "refused" });
    await here.fund(bad, 5_000n, { salt: `0x${"01".padStart(64, "0")}` });
    lies[0] = { totalClaimed: 4_000n };
    expect(await here.settle(facilitator, here.claim(rows))).toMatchObject({ state: "done" });
    expect(await channels.stateOf(bad)).toMatchObject({ totalClaimed: 4_000n });
  });

  it("are settled where the first one shows that nothing is owed", async () => {
    const { channels, devnet } = here;
    const row = await channels.rowOf(await here.open(9_000n), 4_000n);
    expect(await here.settle(facilitator, here.claim([row]))).toMatchObject({ state: "done" });
    const receiver = devnet.accounts.seller.address;
    const settle = { type: "settle", receiver, token: devnet.token };
    owes[0] = [0n, 0n];
    expect(await here.settle(facilitator, settle)).toMatchObject({ state: "done", amount: 4_000n });
  });

  it("cost a settle each ten minutes at most where the second one makes up what is owed", async () => {
    const { devnet } = here;
    const receiver = devnet.accounts.seller.address;
    const settle = { type: "settle", receiver, token: devnet.token };
    const nothing = { reason: "invalid_batch_settlement_evm_nothing_to_settle" };
    owes[1] = [5_000n, 1_000n];
    const before = await transactions();
    expect(await here.settle(facilitator, settle)).toMatchObject({
      reason: "invalid_batch_settlement_evm_settle_transaction_failed",
    });
    expect(await here.settle(facilitator, settle)).toMatchObject(nothing);
    expect((await transactions()) - before).toBe(1);
    now += 600_001;
    await here.settle(facilitator, settle);
    expect(await here.settle(facilitator, settle)).toMatchObject(nothing);
    expect((await transactions()) - before).toBe(2);
  });

  it("have nothing to settle where the second one is silent", async () => {
    const { devnet } = here;
    const settle = {
      type: "settle",
      receiver: devnet.accounts.seller.address,
      token: devnet.token,
    };
    fault = "refuses";
    expect(await here.settle(facilitator, settle)).toMatchObject({
      reason: "invalid_batch_settlement_evm_nothing_to_settle",
    });
  });
});
