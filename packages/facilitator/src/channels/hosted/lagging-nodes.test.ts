import { systemClock } from "@coinslot/chain";
import type { ChannelConfig } from "@coinslot/protocol";
import { toFunctionSelector } from "viem";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import { listChainsOperation } from "../../reads/chains-operation.ts";
import { type HostingDevnet, startHostingDevnet } from "../../testing/hosting-devnet.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { startStuckNode } from "../../testing/stuck-node.ts";

const config = "(address,address,address,address,address,uint40,bytes32)";
const claimTrial = toFunctionSelector(`claim(((${config},uint128),bytes,uint128)[])`);
const settleTrial = toFunctionSelector("settle(address,address)");

describe("trials of a caller's calls, beside endpoints that pass what the chain reverts", () => {
  let here: HostingDevnet;
  let good: ChannelConfig;
  let aheadMs: number;
  /** Seconds by which the chain's blocks are ahead of this machine's time. */
  let passedSeconds: number;

  beforeEach(async () => {
    aheadMs = 0;
    passedSeconds = 0;
    here = await startHostingDevnet("sqlite");
    good = await here.open(9_000n);
  });
  afterEach(() => here?.stop());

  async function pass(seconds: number) {
    passedSeconds += seconds;
    await here.devnet.client.increaseTime({ seconds });
    await here.devnet.mine();
  }

  async function startStuck() {
    const { client, rpcUrl } = here.devnet;
    const stuck = await startStuckNode(rpcUrl, await client.getBlockNumber({ cacheTime: 0 }));
    onTestFinished(stuck.close);
    return stuck;
  }

  const start = (...rpcUrls: string[]) =>
    here.start(
      {},
      {
        network: { rpcUrls },
        now: () => Date.now() + passedSeconds * 1_000,
        clock: { ...systemClock, now: () => systemClock.now() + aheadMs },
      },
    );

  /** Waits until the second endpoint lags. */
  async function lagging(facilitator: CoinslotFacilitator) {
    // Heads are compared each 15 seconds, while there is traffic.
    aheadMs = 16_000;
    await vi.waitFor(async () => {
      await here.verify(facilitator, await here.voucher(good, 1n));
      const { chains } = await facilitator.operator.run(listChainsOperation, {});
      const found = chains.flatMap(({ endpoints }) => endpoints.map((each) => each.isLagging));
      expect(found).toEqual([false, true]);
    }, 30_000);
  }

  /** A channel whose withdrawal leaves nothing to claim, and a node that stands before its end. */
  async function empty() {
    const bad = await here.open(9_000n);
    await here.channels.withdraw(bad, 9_000n);
    const stuck = await startStuck();
    await pass(bad.withdrawDelay);
    await here.channels.finish(bad);
    await here.devnet.mine(10);
    return { bad, stuck };
  }

  async function claim(facilitator: CoinslotFacilitator, bad: ChannelConfig) {
    const { channels } = here;
    const rows = [await channels.rowOf(good, 4_000n), await channels.rowOf(bad, 4_000n)];
    return here.settle(facilitator, here.claim(rows, await channels.signBatch(rows)));
  }

  const countSent = () => here.devnet.client.getTransactionCount(here.devnet.accounts.relayer);

  it("refuse a signed claim by its bad row's name, whatever an endpoint passes that lags", async () => {
    const { bad, stuck } = await empty();
    const facilitator = await start(here.devnet.rpcUrl, stuck.url);
    await lagging(facilitator);
    const trials = stuck.calls();
    const sent = await countSent();
    expect(await claim(facilitator, bad)).toEqual({
      state: "refused",
      reason: "invalid_batch_settlement_evm_claim_simulation_failed",
      message: `Not to be claimed: ${here.channels.idOf(bad)} ClaimExceedsBalance`,
    });
    expect(stuck.calls()).toBe(trials);
    expect(await countSent()).toBe(sent);
  });

  it("name the row that the first endpoint has refused, once the chain has, too", async () => {
    const { bad } = await empty();
    const liar = await startNodeProxy(here.devnet.rpcUrl, async ({ method, params }, ask) =>
      method === "eth_call" && JSON.stringify(params).includes(claimTrial)
        ? { result: "0x" }
        : ask(),
    );
    onTestFinished(liar.close);
    const facilitator = await start(here.devnet.rpcUrl, liar.url);
    expect(await claim(facilitator, bad)).toEqual({
      state: "refused",
      reason: "invalid_batch_settlement_evm_claim_transaction_failed",
      message: `Refused by a node: ${here.channels.idOf(bad)} ClaimExceedsBalance`,
      transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
    });
  });

  it("find nothing to settle, whatever an endpoint shows that lags", async () => {
    const { channels, devnet } = here;
    await channels.claim([await channels.rowOf(good, 4_000n)]);
    const stuck = await startStuck();
    const receiver = devnet.accounts.seller.address;
    await channels.settle(receiver);
    await pass(60);
    await devnet.mine(10);
    const facilitator = await start(devnet.rpcUrl, stuck.url);
    await lagging(facilitator);
    const sent = await countSent();
    const settle = { type: "settle", receiver, token: devnet.token };
    expect(await here.settle(facilitator, settle)).toMatchObject({
      state: "refused",
      reason: "invalid_batch_settlement_evm_nothing_to_settle",
    });
    expect(await countSent()).toBe(sent);
  });

  it("refuse a settle, whatever an endpoint passes that lags", async () => {
    const { channels, devnet } = here;
    await channels.claim([await channels.rowOf(good, 4_000n)]);
    const stuck = await startStuck();
    await pass(60);
    await devnet.mine(10);
    // As of a token that has blocked the receiver since.
    const first = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) =>
      method === "eth_call" && JSON.stringify(params).includes(settleTrial)
        ? { error: { code: 3, message: "execution reverted", data: "0x" } }
        : ask(),
    );
    onTestFinished(first.close);
    const facilitator = await start(first.url, stuck.url);
    await lagging(facilitator);
    const trials = stuck.calls();
    const receiver = devnet.accounts.seller.address;
    const settle = { type: "settle", receiver, token: devnet.token };
    expect(await here.settle(facilitator, settle)).toMatchObject({
      state: "refused",
      reason: "invalid_batch_settlement_evm_settle_simulation_failed",
    });
    expect(stuck.calls()).toBe(trials);
  });
});
