import type { SettleResponse } from "@coinslot/protocol";
import { isHex, keccak256 } from "viem";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import * as z from "zod";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import type { Logger } from "../../logger.ts";
import { startNodeAhead } from "../../testing/node-ahead.ts";
import { type Intercept, type NodeProxy, startNodeProxy } from "../../testing/node-proxy.ts";
import { holdRequests } from "../../testing/settling-actions.ts";
import { type SettlingDevnet, startSettlingDevnet } from "../../testing/settling-devnet.ts";

let settling: SettlingDevnet | undefined;
let proxy: NodeProxy | undefined;

afterEach(async () => {
  await settling?.stop();
  await proxy?.close();
  settling = undefined;
  proxy = undefined;
});

/**
 * A devnet behind a node that adds five, or as many as given, to its next nonces, or drops
 * transactions.
 */
async function begin(lies: number, { by = 5, chainId }: { by?: number; chainId?: string } = {}) {
  const here = await startSettlingDevnet("sqlite");
  settling = here;
  const lying = { lies, hasLied: false, isSwallowing: false, sends: 0, raws: new Set<string>() };
  proxy = await startNodeProxy(here.devnet.rpcUrl, async ({ method, params: [raw] }, ask) => {
    if (method === "eth_sendRawTransaction" && lying.isSwallowing && isHex(raw)) {
      lying.sends += 1;
      lying.raws.add(raw);
      return { result: keccak256(raw) };
    }
    const answer = await ask();
    if (method === "eth_chainId" && lying.hasLied && lying.lies > 0 && chainId !== undefined) {
      return { result: chainId };
    }
    if (method !== "eth_getTransactionCount" || lying.lies === 0) return answer;
    lying.lies -= 1;
    lying.hasLied = true;
    if (!("result" in answer)) return answer;
    return { result: `0x${Math.max(0, Number(answer.result) + by).toString(16)}` };
  });
  const warnings: string[] = [];
  const note = (_fields: object, text?: string) => void warnings.push(text ?? "");
  const logger: Logger = { debug: () => {}, info: () => {}, warn: note, error: note };
  const network = { rpcUrls: [proxy.url], blockTimeSeconds: 1 };
  const times = { sweepMs: 100, resendMs: 200, replaceMs: 60_000, loseMs: 600 };
  const countUsed = () =>
    here.devnet.client.getTransactionCount({ address: here.devnet.accounts.relayer.address });
  return { ...here, lying, warnings, options: { network, times, logger }, countUsed };
}

const blockSchema = z.object({ result: z.looseObject({}) });
const countSchema = z.object({ result: z.string().transform(Number) });

/** A node that adds to its next nonces. */
function countMore(by: number): Intercept {
  return async ({ method }, ask) => {
    const answer = await ask();
    if (method !== "eth_getTransactionCount") return answer;
    return { result: `0x${(countSchema.parse(answer).result + by).toString(16)}` };
  };
}

type Paid = Awaited<ReturnType<SettlingDevnet["pay"]>>;

function settle(facilitator: CoinslotFacilitator, paid: Paid): Promise<SettleResponse> {
  return facilitator.settle(paid.paymentPayload, paid.paymentRequirements);
}

describe("a node that reports a nonce above the true one", () => {
  it("a nonce above the true one is ignored where a node reports it once", async () => {
    const { start, pay, options, countUsed, warnings } = await begin(1);
    const facilitator = await start(options);
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect(await countUsed()).toBe(1);
    expect(warnings).toContain("a node was wrong about the nonce");
  });

  it("a nonce above the true one, reported twice, causes a gap, which is filled: both payments are settled", async () => {
    const { devnet, start, pay, options, countUsed, warnings, balanceOf } = await begin(2);
    const facilitator = await start(options);
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect(await countUsed()).toBe(7);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(2_000n);
    expect(warnings.filter((text) => text.startsWith("the chain waits for a nonce"))).toHaveLength(
      5,
    );
  });

  it.each([
    ["as nodes of another chain do", 3, { chainId: "0x1" }],
    ["in answers that contradict each other", 2, {}],
  ])("far above it, %s, is ignored", async (_case, lies, chain) => {
    const { start, pay, options, countUsed } = await begin(lies, { by: 100_000, ...chain });
    const facilitator = await start(options);
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect(await countUsed()).toBe(1);
  });

  it("far above it, for good, stops a relayer until the node is right again", async () => {
    const here = await begin(0, { by: 100_000 });
    const { devnet, start, pay, options, countUsed, lying, warnings, balanceOf } = here;
    const former = await start(options);
    expect(await settle(former, await pay())).toMatchObject({ success: true });
    await former.close();
    lying.lies = Number.POSITIVE_INFINITY;
    const facilitator = await start(options);
    const pending = settle(facilitator, await pay());
    await vi.waitFor(async () => {
      const { payments } = await facilitator.payments.list({ state: "submitted" });
      expect(payments).toHaveLength(1);
    }, 20_000);
    expect(warnings.filter((text) => text.includes("far ahead of the ledger's"))).toHaveLength(1);
    lying.lies = 0;
    expect(await pending).toMatchObject({ success: true });
    expect(
      warnings.filter((text) => text.includes("far below those that were signed")),
    ).toHaveLength(1);
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect(await countUsed()).toBe(3);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(3_000n);
  });

  it("far above it, for good, leaves no nonce behind that is never used", async () => {
    const here = await begin(Number.POSITIVE_INFINITY, { by: 300 });
    const { devnet, start, pay, options, countUsed, lying, balanceOf } = here;
    const facilitator = await start(options);
    const pending = settle(facilitator, await pay());
    await vi.waitFor(async () => {
      const { payments } = await facilitator.payments.list({ state: "submitted" });
      expect(payments).toHaveLength(1);
    }, 20_000);
    lying.lies = 0;
    expect(await pending).toMatchObject({ success: true });
    // The relayer comes to the nonce of the transaction that was given up.
    await devnet.client.setNonce({ address: devnet.accounts.relayer.address, nonce: 300 });
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect(await countUsed()).toBeGreaterThanOrEqual(302);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(3_000n);
  });

  it.each([5, 100_000])("%i above it, for good, is outvoted by another node", async (by) => {
    const { devnet, start, pay, options, countUsed, warnings } = await begin(
      Number.POSITIVE_INFINITY,
      { by },
    );
    const rpcUrls = [...options.network.rpcUrls, devnet.rpcUrl];
    const facilitator = await start({ ...options, network: { ...options.network, rpcUrls } });
    for (let count = 1; count <= 2; count += 1) {
      expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
      expect(await countUsed()).toBe(count);
    }
    expect(warnings).toContain("a node was wrong about the nonce");
  });

  it.each([5, 100_000])(
    "%i above it, for good, is outvoted while the node shows blocks that others lack",
    async (by) => {
      const { devnet, start, pay, options, countUsed } = await begin(0);
      const ahead = await startNodeAhead(devnet, { ahead: 100n, isArmed: false });
      onTestFinished(() => ahead.close());
      const liar = await startNodeProxy(ahead.url, countMore(by));
      onTestFinished(() => liar.close());
      const rpcUrls = [liar.url, devnet.rpcUrl];
      const facilitator = await start({ ...options, network: { ...options.network, rpcUrls } });
      for (let count = 1; count <= 2; count += 1) {
        expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
        expect(await countUsed()).toBe(count);
      }
    },
  );

  it("causes no second payment, even if a transaction counts as lost meanwhile", async () => {
    const { devnet, start, pay, options, countUsed, lying, balanceOf } = await begin(0);
    const facilitator = await start(options);
    await devnet.setAutomine(false);
    const settled = settle(facilitator, await pay());
    await vi.waitFor(
      async () => expect((await devnet.client.getTxpoolStatus()).pending).toBe(1),
      20_000,
    );
    lying.lies = Number.POSITIVE_INFINITY;
    await vi.waitFor(
      async () =>
        expect(
          await facilitator.metrics.getSingleMetricAsString("coinslot_transactions_total"),
        ).toMatch(/event="lost"} [1-9]/),
      20_000,
    );
    const content = await devnet.client.getTxpoolContent();
    for (const byNonce of Object.values(content.pending)) {
      for (const { hash } of Object.values(byNonce)) {
        await devnet.client.dropTransaction({ hash });
      }
    }
    lying.lies = 0;
    await devnet.setAutomine(true);
    expect(await settled).toMatchObject({ success: true });
    await vi.waitFor(async () => expect(await countUsed()).toBeGreaterThan(5), 20_000);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
  });
});

describe("a node that reports a nonce far below the true one", () => {
  it("because it is stuck at an old block has no say, where the ledger was restored", async () => {
    const { devnet, start, pay, options, countUsed, balanceOf } = await begin(0);
    const { relayer, seller } = devnet.accounts;
    const stuck = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
      if (method === "eth_getTransactionCount") return { result: "0x1" };
      const answer = await ask();
      if (method !== "eth_getBlockByNumber") return answer;
      const { result } = blockSchema.parse(answer);
      return { result: { ...result, number: "0x1", timestamp: "0x65000000" } };
    });
    onTestFinished(() => stuck.close());
    const rpcUrls = [...options.network.rpcUrls, stuck.url];
    const facilitator = await start({ ...options, network: { ...options.network, rpcUrls } });
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    // Rows that a restored ledger lacks.
    await devnet.client.setNonce({ address: relayer.address, nonce: 300 });
    await devnet.mine(40);
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect(await countUsed()).toBe(301);
    expect(await balanceOf(seller.address)).toBe(2_000n);
  });

  it.each([5, 300])(
    "a node that reports a nonce far below the true one for good, at the right block, holds up no relayer whose restored ledger lacks %i nonces",
    async (nonce) => {
      const { devnet, start, pay, options, countUsed, balanceOf } = await begin(0);
      const { relayer, seller } = devnet.accounts;
      const low = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) =>
        method === "eth_getTransactionCount" ? { result: "0x1" } : ask(),
      );
      onTestFinished(() => low.close());
      const rpcUrls = [...options.network.rpcUrls, low.url];
      const facilitator = await start({ ...options, network: { ...options.network, rpcUrls } });
      expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
      await devnet.client.setNonce({ address: relayer.address, nonce });
      for (let count = 1; count <= 2; count += 1) {
        expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
        expect(await countUsed()).toBe(nonce + count);
      }
      expect(await balanceOf(seller.address)).toBe(3_000n);
    },
  );

  it("a node that reports a nonce far below the true one for good gets no second transaction of a payment: the ledger has included ones above it", async () => {
    const { devnet, start, pay, options, countUsed, lying, warnings, balanceOf } = await begin(0, {
      by: -100_000,
    });
    const { relayer, seller } = devnet.accounts;
    await devnet.client.setNonce({ address: relayer.address, nonce: 300 });
    const facilitator = await start(options);
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    [lying.lies, lying.isSwallowing] = [Number.POSITIVE_INFINITY, true];
    const pending = settle(facilitator, await pay());
    const told = () => warnings.filter((text) => text.includes("far below those that were signed"));
    await vi.waitFor(() => expect(told()).toHaveLength(1), 20_000);
    const { sends } = lying;
    await vi.waitFor(() => expect(lying.sends).toBeGreaterThan(sends + 8), 20_000);
    expect(lying.raws.size).toBe(1);
    [lying.lies, lying.isSwallowing] = [0, false];
    expect(await pending).toMatchObject({ success: true });
    expect(await countUsed()).toBe(302);
    expect(await balanceOf(seller.address)).toBe(2_000n);
  });
});

describe("a submitted payment that is never mined", () => {
  it("ends once it is expired at depth, and its committed balance is freed", async () => {
    const { devnet, start, pay, options, lying } = await begin(0);
    lying.isSwallowing = true;
    let aheadMs = 0;
    const requests = holdRequests();
    const facilitator = await start({
      ...options,
      ...requests.options,
      network: { ...options.network, finalAfter: 2 },
      now: () => Date.now() + aheadMs,
    });
    const paid = await pay();
    const pending = settle(facilitator, paid);
    await vi.waitFor(async () => {
      const { payments } = await facilitator.payments.list({ state: "submitted" });
      expect(payments).toHaveLength(1);
    }, 20_000);
    requests.end();
    expect(await pending).toMatchObject({ errorReason: "settlement_pending" });
    aheadMs = 400_000;
    await devnet.client.increaseTime({ seconds: 400 });
    await devnet.client.mine({ blocks: 3 });
    await vi.waitFor(
      async () =>
        expect((await facilitator.payments.list()).payments).toMatchObject([
          {
            state: "failed",
            reason: "invalid_exact_evm_payload_authorization_valid_before",
          },
        ]),
      20_000,
    );
  });
});
