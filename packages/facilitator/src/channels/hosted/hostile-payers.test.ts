import { withDatabase } from "@coinslot/devnet";
import {
  CallerLimitedError,
  type ChannelConfig,
  channelContracts,
  channelSettlementAbi,
  type Hex,
  toLowerHex,
} from "@coinslot/protocol";
import {
  decodeFunctionData,
  getAbiItem,
  isHex,
  keccak256,
  parseEventLogs,
  toFunctionSelector,
  toHex,
} from "viem";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import { patience } from "../../testing/claiming-devnet.ts";
import { type HostingDevnet, startHostingDevnet } from "../../testing/hosting-devnet.ts";
import { type ChannelLie, lieAboutChannels } from "../../testing/lying-escrow.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";

const abi = channelSettlementAbi;
const refundSelector = toFunctionSelector(getAbiItem({ abi, name: "refund" }));

describe("channels of callers, with payers that take what they can", () => {
  let here: HostingDevnet;
  let facilitator: CoinslotFacilitator;

  beforeEach(async () => {
    here = await startHostingDevnet("sqlite");
    facilitator = await here.start();
  });
  afterEach(() => here?.stop());

  /** The calls of the escrow that a transaction makes. */
  async function callsOf(hash: Hex | undefined) {
    if (hash === undefined) throw new Error("No transaction.");
    const { input } = await here.devnet.client.getTransaction({ hash });
    const { functionName, args } = decodeFunctionData({ abi, data: input });
    if (functionName !== "multicall") return [{ functionName, args }];
    return args[0].map((data) => decodeFunctionData({ abi, data }));
  }

  /** The transactions that have paid claims, each with the ids of its channels. */
  async function claims(): Promise<Hex[][]> {
    const { settlement: address } = channelContracts;
    const logs = await here.devnet.client.getLogs({ address, fromBlock: 0n });
    const found = new Map<Hex, Hex[]>();
    for (const { transactionHash, args } of parseEventLogs({ abi, logs, eventName: "Claimed" })) {
      found.set(transactionHash, [...(found.get(transactionHash) ?? []), args.channelId]);
    }
    return [...found.values()];
  }

  it("signs a refund of what the claims beside it leave, also where more is asked for", async () => {
    const config = await here.open(9_000n);
    const rows = [await here.channels.rowOf(config, 4_000n)];
    const asked = await here.refund(config, 4_000n, { amount: 9_000n, claims: rows });
    const answer = await here.settle(facilitator, asked);
    expect(answer).toMatchObject({ state: "done", amount: 5_000n });
    // Its signature is public, and may be sent without the claim: it leaves all that was charged.
    const calls = await callsOf("transaction" in answer ? answer.transaction : undefined);
    expect(calls).toMatchObject([
      { functionName: "claimWithSignature" },
      {
        functionName: "refundWithSignature",
        args: [expect.anything(), 5_000n, 0n, expect.any(String)],
      },
    ]);
  });

  it("refuses a refund that its caller has signed for more than the claims leave", async () => {
    const { channels } = here;
    const config = await here.open(9_000n);
    const rows = [await channels.rowOf(config, 4_000n)];
    const asked = await here.refund(config, 4_000n, {
      amount: 9_000n,
      claims: rows,
      refundAuthorizerSignature: await channels.signRefund(config, 9_000n, 0n),
    });
    expect(await here.settle(facilitator, asked)).toMatchObject({
      state: "refused",
      reason: "invalid_batch_settlement_evm_refund_amount_invalid",
    });
    expect(await channels.stateOf(config)).toMatchObject({ balance: 9_000n, totalClaimed: 0n });
  });

  it("claims first, and refunds after it, while the payer withdraws", async () => {
    const { channels } = here;
    const config = await here.open(9_000n);
    await channels.withdraw(config, 4_000n);
    const rows = [await channels.rowOf(config, 4_000n)];
    const refund = await here.refund(config, 4_000n, { amount: 5_000n, claims: rows });
    const answer = await here.settle(facilitator, refund);
    expect(answer).toMatchObject({ state: "done", amount: 5_000n });
    const calls = await callsOf("transaction" in answer ? answer.transaction : undefined);
    expect(calls).toMatchObject([{ functionName: "refundWithSignature" }]);
    expect(await here.settle(facilitator, refund)).toEqual(answer);
    expect(await channels.stateOf(config)).toMatchObject({ balance: 4_000n, totalClaimed: 4_000n });
  });

  it("keeps half of a caller's gas for its claims, however much of it buyers burn", async () => {
    const { channels, devnet } = here;
    const now = Date.now();
    await withDatabase(here.ledger.url, ({ execute }) =>
      execute(
        `insert into caller_gas (id, network, caller, gas, created_at, by_buyer)
         values ('1', '${devnet.network}', 'shop', 29900000, ${now}, 1)`,
      ),
    );
    const config = channels.configOf();
    const deposit = await here.deposit(config);
    await expect(here.settle(facilitator, deposit, { config })).rejects.toThrow(CallerLimitedError);
    const owed = await here.open(9_000n);
    const refund = await here.refund(owed, 0n, { amount: 1n });
    await expect(here.settle(facilitator, refund)).rejects.toThrow(CallerLimitedError);
    const claim = here.claim([await channels.rowOf(owed, 4_000n)]);
    expect(await here.settle(facilitator, claim)).toMatchObject({ state: "done" });
  });

  it("limits the deposits in vain of one payer, and serves the others of the same caller", async () => {
    const { channels } = here;
    const [poor] = here.devnet.accounts.others;
    if (poor === undefined) throw new Error("No account.");
    const payer = toLowerHex(poor.address);
    const config = channels.configOf({ payer, payerAuthorizer: payer });
    const forged = await here.deposit(config, { payer: poor, signer: poor });
    for (let count = 0; count < 30; count += 1) {
      expect(await here.verify(facilitator, forged, { config })).toMatchObject({
        reason: "invalid_batch_settlement_evm_insufficient_balance",
      });
    }
    const next = here.verify(facilitator, forged, { config });
    await expect(next).rejects.toThrow(CallerLimitedError);
    const honest = channels.configOf();
    const deposit = await here.deposit(honest);
    expect(await here.verify(facilitator, deposit, { config: honest })).toMatchObject({
      isValid: true,
    });
  });

  it("shows a node no signature of a refund that it refuses", async () => {
    const shown: string[] = [];
    let refuses = true;
    const selector = toFunctionSelector(getAbiItem({ abi, name: "refundWithSignature" }));
    const proxy = await startNodeProxy(here.devnet.rpcUrl, async ({ method, params }, ask) => {
      const words = JSON.stringify(params);
      if (words.includes(selector.slice(2))) shown.push(method);
      const isTrial = method === "eth_call" && words.includes(refundSelector.slice(2));
      if (refuses && isTrial) return { error: { code: 3, message: "execution reverted" } };
      return ask();
    });
    onTestFinished(proxy.close);
    await facilitator.close();
    const watched = await here.start({}, { network: { rpcUrls: [proxy.url] } });
    const config = await here.open(9_000n);
    const refund = await here.refund(config, 0n, {
      amount: 9_000n,
      refundAuthorizerSignature: await here.channels.signRefund(config, 9_000n, 0n),
    });
    expect(await here.settle(watched, refund)).toMatchObject({
      reason: "invalid_batch_settlement_evm_refund_simulation_failed",
    });
    expect(shown).toEqual([]);
    refuses = false;
    expect(await here.settle(watched, refund)).toMatchObject({ state: "done" });
  });

  it("signs no refund of money that one node of two has made up", async () => {
    const { devnet, channels } = here;
    let lie: ChannelLie = { balance: 20_000n };
    const proxy = await startNodeProxy(devnet.rpcUrl, (call, ask) =>
      lieAboutChannels(call, ask, lie),
    );
    onTestFinished(proxy.close);
    await facilitator.close();
    const misled = await here.start({}, { network: { rpcUrls: [proxy.url, devnet.rpcUrl] } });
    const config = await here.open(9_000n);
    const claims = [await channels.rowOf(config, 4_000n)];
    const refund = await here.refund(config, 4_000n, { amount: 9_000n, claims });
    await expect(here.settle(misled, refund)).rejects.toMatchObject({ kind: "unavailable" });
    expect(await channels.stateOf(config)).toMatchObject({ refundNonce: 0n });
    lie = undefined;
    expect(await here.settle(misled, refund)).toMatchObject({ state: "done", amount: 5_000n });
  });

  it("claims before a refund beside a withdrawal, though one node of two shows the claims as paid", async () => {
    const { devnet, channels } = here;
    const lie: ChannelLie = { totalClaimed: 4_000n, withdrawal: undefined };
    const proxy = await startNodeProxy(devnet.rpcUrl, (call, ask) =>
      lieAboutChannels(call, ask, lie),
    );
    onTestFinished(proxy.close);
    await facilitator.close();
    const misled = await here.start({}, { network: { rpcUrls: [proxy.url, devnet.rpcUrl] } });
    const config = await here.open(9_000n);
    await channels.withdraw(config, 5_000n);
    const rows = [await channels.rowOf(config, 4_000n)];
    const refund = await here.refund(config, 4_000n, { amount: 5_000n, claims: rows });
    const answer = await here.settle(misled, refund);
    expect(answer).toMatchObject({ state: "done", amount: 5_000n });
    const alone = [expect.objectContaining({ functionName: "refundWithSignature" })];
    expect(await callsOf(answer.transaction)).toEqual(alone);
    expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 4_000n });
    expect(await claims()).toEqual([[channels.idOf(config)]]);
  });

  it("signs no refund beside a withdrawal where one node of two makes up the claims' receipt", async () => {
    const { devnet, channels } = here;
    let lie: ChannelLie = { totalClaimed: 4_000n, withdrawal: undefined };
    const proxy = await startNodeProxy(devnet.rpcUrl, async (call, ask) => {
      const [given] = call.params;
      if (lie === undefined || !isHex(given)) return lieAboutChannels(call, ask, lie);
      if (call.method === "eth_sendRawTransaction") return { result: keccak256(given) };
      if (call.method !== "eth_getTransactionReceipt") return ask();
      const { number, hash } = await devnet.client.getBlock();
      const place = { transactionHash: given, blockNumber: toHex(number), blockHash: hash };
      return { result: { ...place, status: "0x1", gasUsed: "0x1", logs: [] } };
    });
    onTestFinished(proxy.close);
    await facilitator.close();
    const misled = await here.start({}, { network: { rpcUrls: [proxy.url, devnet.rpcUrl] } });
    const config = await here.open(9_000n);
    await channels.withdraw(config, 5_000n);
    const rows = [await channels.rowOf(config, 4_000n)];
    const refund = await here.refund(config, 4_000n, { amount: 5_000n, claims: rows });
    // The other node has the claim, in no block yet.
    await devnet.setAutomine(false);
    await expect(here.settle(misled, refund)).rejects.toMatchObject({ kind: "unavailable" });
    expect(await channels.stateOf(config)).toMatchObject({ refundNonce: 0n, totalClaimed: 0n });
    lie = undefined;
    await devnet.setAutomine(true);
    await devnet.mine(1);
    await vi.waitFor(async () => {
      expect(await here.settle(misled, refund)).toMatchObject({ state: "done" });
    }, patience);
    expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 4_000n });
  });

  it("claims a row alone whose payer could take its money away in front of the claim", async () => {
    const { channels, devnet } = here;
    const opened: ChannelConfig[] = [];
    for (let count = 0; count < 3; count += 1) opened.push(await here.open(9_000n));
    const ids = opened.map((config) => channels.idOf(config));
    const [, leaving] = opened;
    if (leaving === undefined) throw new Error("No channel.");
    await channels.withdraw(leaving, 9_000n);
    const { timestamp } = await devnet.client.getBlock();
    await devnet.client.setNextBlockTimestamp({ timestamp: timestamp + 850n });
    await devnet.mine(1);
    const rows = await Promise.all(opened.map((config) => channels.rowOf(config, 4_000n)));
    expect(await here.settle(facilitator, here.claim(rows))).toMatchObject({ state: "done" });
    const claimed = await claims();
    expect(claimed.toSorted((a, b) => a.length - b.length)).toEqual([[ids[1]], [ids[0], ids[2]]]);
  });

  it("answers for a claim that another sender has made, and sends it again where the chain lost it", async () => {
    const { channels, devnet } = here;
    const config = await here.open(9_000n);
    const rows = [await channels.rowOf(config, 4_000n)];
    const before = await devnet.snapshot();
    await channels.claim(rows);
    expect(await here.settle(facilitator, here.claim(rows))).toEqual({
      state: "done",
      transaction: undefined,
    });
    await devnet.revert(before);
    // Its nodes are asked for nothing below the highest head that they had.
    await devnet.mine(3);
    expect(await here.settle(facilitator, here.claim(rows))).toMatchObject({ state: "done" });
    expect(await channels.stateOf(config)).toMatchObject({ totalClaimed: 4_000n });
  });
});
