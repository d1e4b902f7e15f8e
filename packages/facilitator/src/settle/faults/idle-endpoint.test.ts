import { setTimeout } from "node:timers/promises";
import { getAddress, isAddress, isHex, keccak256 } from "viem";
import { afterEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { type NodeProxy, startNodeProxy } from "../../testing/node-proxy.ts";
import { listen, reserve, settle, submitAsStranger } from "../../testing/settling-actions.ts";
import { type SettlingDevnet, startSettlingDevnet } from "../../testing/settling-devnet.ts";

let here: SettlingDevnet | undefined;
let idle: NodeProxy | undefined;
let slow: NodeProxy | undefined;

const receiptSchema = z.object({
  result: z.object({ blockNumber: z.string().transform(BigInt) }),
});

afterEach(async () => {
  await here?.stop();
  await idle?.close();
  await slow?.close();
  here = undefined;
  idle = undefined;
  slow = undefined;
});

const refuse = (message: string) => () => ({ error: { code: -32000, message } });

describe("a first endpoint", () => {
  it.each([
    ["takes transactions and passes none on", (raw: `0x${string}`) => ({ result: keccak256(raw) })],
    ["refuses each transaction as one with a used nonce", refuse("nonce too low")],
    ["refuses each transaction as invalid", refuse("invalid sender")],
    ["refuses each transaction by a rule of its own", refuse("rejected by policy")],
  ])("a first endpoint that %s leaves them to the second one", async (_case, answer) => {
    here = await startSettlingDevnet("sqlite");
    const { devnet, start, pay, balanceOf } = here;
    idle = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [raw] }, ask) =>
      method === "eth_sendRawTransaction" && isHex(raw) ? answer(raw) : ask(),
    );
    const facilitator = await start({
      network: { rpcUrls: [idle.url, devnet.rpcUrl], blockTimeSeconds: 1 },
      times: { sweepMs: 100, resendMs: 200, replaceMs: 60_000, loseMs: 600 },
      settleTimeoutSeconds: 30,
    });

    for (let count = 0; count < 2; count += 1) {
      expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    }

    expect(await balanceOf(devnet.accounts.seller.address)).toBe(2_000n);
    const { relayer } = devnet.accounts;
    expect(await devnet.client.getTransactionCount({ address: relayer.address })).toBe(2);
  });

  it.each([
    ["the next nonce", (raws: Set<string>) => raws.size],
    ["one far above it", (raws: Set<string>) => raws.size + 1_000],
  ])(
    "a first endpoint that passes no transaction on, and counts their nonces as used up to %s, leaves them to the second one",
    async (_case, countOf) => {
      here = await startSettlingDevnet("sqlite");
      const { devnet, start, pay, balanceOf } = here;
      const raws = new Set<string>();
      idle = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [raw] }, ask) => {
        if (method === "eth_getTransactionReceipt") return { result: null };
        if (method === "eth_getTransactionCount") {
          return { result: `0x${(raws.size === 0 ? 0 : countOf(raws)).toString(16)}` };
        }
        if (method !== "eth_sendRawTransaction" || !isHex(raw)) return ask();
        raws.add(raw);
        return { result: keccak256(raw) };
      });
      const facilitator = await start({
        network: { rpcUrls: [idle.url, devnet.rpcUrl], blockTimeSeconds: 1 },
        times: { sweepMs: 100, resendMs: 200, replaceMs: 60_000, loseMs: 600 },
        settleTimeoutSeconds: 30,
      });

      for (let count = 0; count < 2; count += 1) {
        expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
      }

      expect(await balanceOf(devnet.accounts.seller.address)).toBe(2_000n);
      const { relayer } = devnet.accounts;
      expect(await devnet.client.getTransactionCount({ address: relayer.address })).toBe(2);
    },
  );

  it("a first endpoint that shows no transaction as mined leaves no paid request without its answer", async () => {
    here = await startSettlingDevnet("sqlite");
    const { devnet, start, pay, balanceOf } = here;
    idle = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [raw] }, ask) => {
      if (method === "eth_getTransactionReceipt") return { result: null };
      if (method === "eth_getTransactionCount") return { result: "0x0" };
      if (method !== "eth_sendRawTransaction" || !isHex(raw)) return ask();
      return { result: keccak256(raw) };
    });
    const facilitator = await start({
      network: { rpcUrls: [idle.url, devnet.rpcUrl], blockTimeSeconds: 1 },
      times: { sweepMs: 100, resendMs: 200, replaceMs: 60_000, loseMs: 600 },
      settleTimeoutSeconds: 30,
    });
    const events = listen(facilitator);

    for (let count = 0; count < 3; count += 1) {
      expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    }

    expect(await balanceOf(devnet.accounts.seller.address)).toBe(3_000n);
    expect(events).not.toContain("settle_reorganised");
  });

  it.each([
    ["receipts", ["eth_getTransactionReceipt"], { result: null }],
    ["readable receipts", ["eth_getTransactionReceipt"], refuse("method not found")()],
    ["receipts and logs", ["eth_getTransactionReceipt", "eth_getLogs"], { result: null }],
  ])(
    "a first endpoint without %s leaves no paid request without its answer",
    async (_case, methods, answer) => {
      here = await startSettlingDevnet("sqlite");
      const { devnet, start, pay, balanceOf } = here;
      idle = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
        if (!methods.includes(method)) return ask();
        return method === "eth_getLogs" ? { result: [] } : answer;
      });
      const facilitator = await start({
        network: { rpcUrls: [idle.url, devnet.rpcUrl], blockTimeSeconds: 1 },
        times: { sweepMs: 100, resendMs: 200, replaceMs: 60_000, loseMs: 600 },
        settleTimeoutSeconds: 30,
      });

      for (let count = 0; count < 2; count += 1) {
        expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
      }

      expect(await balanceOf(devnet.accounts.seller.address)).toBe(2_000n);
    },
  );

  it.each([
    "eth_call",
    "eth_getCode",
    "eth_getBlockByNumber",
    "eth_getTransactionCount",
    "eth_getTransactionReceipt",
    "eth_gasPrice",
    "eth_maxPriorityFeePerGas",
    "eth_feeHistory",
    "eth_getBalance",
    "eth_getLogs",
  ])("a first endpoint that fails only %s stops no sale", async (failing) => {
    here = await startSettlingDevnet("sqlite");
    const { devnet, start, pay, balanceOf } = here;
    idle = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) =>
      method === failing ? { error: { code: -32603, message: "Internal error" } } : ask(),
    );
    const facilitator = await start({
      network: { rpcUrls: [idle.url, devnet.rpcUrl], blockTimeSeconds: 1 },
      times: { sweepMs: 100, resendMs: 200, replaceMs: 60_000, loseMs: 600 },
      settleTimeoutSeconds: 30,
    });
    const paid = await pay();

    expect(await facilitator.verify(paid.paymentPayload, paid.paymentRequirements)).toMatchObject({
      isValid: true,
    });
    expect(await settle(facilitator, paid)).toMatchObject({ success: true });

    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
  });

  it("a first endpoint whose receipts and counts are 30 blocks behind delays 16 payments no longer than one, beside a slow one", async () => {
    here = await startSettlingDevnet("sqlite", { blockTimeSeconds: 1 });
    const { devnet, start, pay } = here;
    const behind = async () => {
      const head = await devnet.client.getBlockNumber({ cacheTime: 0 });
      return head > 30n ? head - 30n : 0n;
    };
    idle = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [of] }, ask) => {
      if (method === "eth_getTransactionCount" && isAddress(String(of))) {
        const [address, blockNumber] = [getAddress(String(of)), await behind()];
        const count = await devnet.client.getTransactionCount({ address, blockNumber });
        return { result: `0x${count.toString(16)}` };
      }
      const answer = await ask();
      if (method !== "eth_getTransactionReceipt") return answer;
      const block = receiptSchema.safeParse(answer).data?.result.blockNumber ?? 0n;
      return block > (await behind()) ? { result: null } : answer;
    });
    let counts = 0;
    slow = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
      if (method === "eth_getTransactionCount") counts += 1;
      await setTimeout(1_000);
      return ask();
    });
    const facilitator = await start({
      network: { rpcUrls: [idle.url, slow.url], blockTimeSeconds: 1 },
      maxPaymentsPerTransaction: 1,
      times: { sweepMs: 100, resendMs: 200, replaceMs: 60_000, loseMs: 600 },
      settleTimeoutSeconds: 15,
    });
    const payments = await Promise.all(Array.from({ length: 16 }, () => pay()));

    const settled = await Promise.all(payments.map((paid) => settle(facilitator, paid)));

    expect(settled.map(({ success }) => success)).toEqual(payments.map(() => true));
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect(counts).toBeLessThan(16);
  });

  it("a first endpoint beside one that hangs gets the replacement of a transaction in time", async () => {
    here = await startSettlingDevnet("sqlite");
    const { devnet, start, pay } = here;
    await devnet.setAutomine(false);
    const sentAt = new Map<string, number>();
    idle = await startNodeProxy(devnet.rpcUrl, ({ method, params: [raw] }, ask) => {
      const isNew = method === "eth_sendRawTransaction" && !sentAt.has(String(raw));
      if (isNew) sentAt.set(String(raw), performance.now());
      return ask();
    });
    let hangs = false;
    let release: () => void = () => undefined;
    const released = new Promise<undefined>((resolve) => {
      release = () => resolve(undefined);
    });
    slow = await startNodeProxy(devnet.rpcUrl, (_call, ask) => (hangs ? released : ask()));
    const facilitator = await start({
      network: { rpcUrls: [idle.url, slow.url], blockTimeSeconds: 1 },
      times: { sweepMs: 100, resendMs: 900, replaceMs: 1_000, loseMs: 60_000 },
    });

    hangs = true;
    const pending = settle(facilitator, await pay());
    await vi.waitFor(() => expect(sentAt.size).toBeGreaterThan(1), 20_000);
    release();
    await devnet.setAutomine(true);
    await devnet.mine();

    const [first = 0, second = 0] = sentAt.values();
    expect(second - first).toBeLessThan(8_000);
    expect(await pending).toMatchObject({ success: true });
  });

  it("a first endpoint without logs hides no execution by another sender", async () => {
    here = await startSettlingDevnet("sqlite");
    const { devnet, start, pay } = here;
    idle = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) =>
      method === "eth_getLogs" ? { result: [] } : ask(),
    );
    const facilitator = await start({
      network: { rpcUrls: [idle.url, devnet.rpcUrl], blockTimeSeconds: 1 },
      times: { sweepMs: 100, resendMs: 200, replaceMs: 60_000, loseMs: 600 },
      settleTimeoutSeconds: 30,
    });
    const paid = await pay();
    const reservation = await reserve(facilitator, paid);
    await submitAsStranger(here, paid);

    expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: true });
  });
});
