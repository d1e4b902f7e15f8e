import { type Hex, isHex, keccak256, parseTransaction } from "viem";
import { afterEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { callsByNonce, type NodeProxy, startNodeProxy } from "../../testing/node-proxy.ts";
import { holdRequests, settle } from "../../testing/settling-actions.ts";
import {
  enginesByDay,
  type SettlingDevnet,
  startSettlingDevnet,
} from "../../testing/settling-devnet.ts";

/** The outcome of one broadcast. */
interface Lie {
  /** True if the node gets the transaction. */
  isForwarded: boolean;
  /** The error that is returned; without one the connection breaks. */
  says?: string;
}

const receiptSchema = z.object({ result: z.looseObject({}).nullable() });

let settling: SettlingDevnet | undefined;
let proxy: NodeProxy | undefined;

afterEach(async () => {
  await settling?.stop();
  await proxy?.close();
  settling = undefined;
  proxy = undefined;
});

/**
 * A devnet behind a node that lies about the next broadcasts, and is honest about everything else.
 */
async function begin(options: {
  engine?: "sqlite" | "postgres";
  lies: Lie[];
  /** The error for a transaction that it never accepts. */
  refuse?: (raw: Hex) => string | undefined;
}) {
  const here = await startSettlingDevnet(options.engine ?? "sqlite");
  settling = here;
  const lies = [...options.lies];
  const broadcasts = new Set<Hex>();
  proxy = await startNodeProxy(here.devnet.rpcUrl, async ({ method, params: [raw] }, ask) => {
    if (method !== "eth_sendRawTransaction" || !isHex(raw)) return ask();
    broadcasts.add(raw);
    const refusal = options.refuse?.(raw);
    const lie = refusal === undefined ? lies.shift() : { isForwarded: false, says: refusal };
    if (lie === undefined) return ask();
    if (lie.isForwarded) await ask();
    return lie.says === undefined ? undefined : { error: { code: -32000, message: lie.says } };
  });
  const network = { rpcUrls: [proxy.url], blockTimeSeconds: 1 };
  return { ...here, network, lies, broadcasts };
}

const soon = { resendMs: 100, replaceMs: 60_000, loseMs: 1_000 };

describe.each(enginesByDay("sqlite"))("a broadcast with a lost answer, on %s", (engine) => {
  it("leaves the payment pending with its hash; it resumes, and is paid once", async () => {
    const lies = [{ isForwarded: true }];
    const { devnet, start, network, pay, balanceOf } = await begin({ engine, lies });
    const { relayer, seller } = devnet.accounts;
    const requests = holdRequests();
    const facilitator = await start({ network, times: soon, ...requests.options });
    await devnet.setAutomine(false);
    const paid = await pay();
    const first = settle(facilitator, paid);
    await vi.waitFor(
      async () => expect((await devnet.client.getTxpoolStatus()).pending).toBe(1),
      20_000,
    );
    requests.end();
    const pending = await first;
    expect(pending).toMatchObject({ success: false, errorReason: "settlement_pending" });
    expect(pending.transaction).toMatch(/^0x[0-9a-f]{64}$/);
    await devnet.mine();
    await vi.waitFor(
      async () =>
        expect(await settle(facilitator, paid)).toMatchObject({
          success: true,
          transaction: pending.transaction,
        }),
      20_000,
    );
    expect(await settle(facilitator, paid)).toMatchObject({ errorReason: "duplicate_settlement" });
    expect(await devnet.client.getTransactionCount({ address: relayer.address })).toBe(1);
    expect(await balanceOf(seller.address)).toBe(1_000n);
  });
});

describe("a node that misreports a broadcast", () => {
  it.each([
    ["reports it as known", "already known"],
    ["reports its nonce as used", "nonce too low: next nonce 1, tx nonce 0"],
    ["reports an underpriced replacement", "replacement transaction underpriced"],
    ["reports it as invalid for good", "invalid sender"],
    ["returns an unknown error text", "the moon is full"],
    ["returns no answer", undefined],
  ])(
    "a node that misreports a broadcast and %s has no effect: the payment is paid once, whether the node has it or not",
    async (_, says) => {
      const message = says === undefined ? {} : { says };
      const { devnet, start, network, pay, balanceOf, broadcasts, lies } = await begin({
        lies: [
          { isForwarded: true, ...message },
          { isForwarded: false, ...message },
        ],
      });
      const { relayer, seller } = devnet.accounts;
      const facilitator = await start({ network, times: soon });
      expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
      expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
      expect(lies).toEqual([]);
      expect(await devnet.client.getTransactionCount({ address: relayer.address })).toBe(2);
      expect([...callsByNonce(broadcasts).values()].map(({ size }) => size)).toEqual([1, 1]);
      expect(await balanceOf(seller.address)).toBe(2_000n);
    },
  );

  it("a node that misreports a broadcast and never accepts it gets another transaction for its nonce: the payment goes with the next", async () => {
    const refusal = { isForwarded: false, says: "invalid transaction: not for us" };
    const { devnet, start, network, pay, balanceOf, broadcasts } = await begin({
      lies: [refusal, refusal, refusal],
    });
    const { relayer, seller } = devnet.accounts;
    const facilitator = await start({ network, times: soon });
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect(await devnet.client.getTransactionCount({ address: relayer.address })).toBe(2);
    expect([...callsByNonce(broadcasts).values()].map(({ size }) => size)).toEqual([2, 1]);
    expect(await balanceOf(seller.address)).toBe(1_000n);
  });

  it("a node that misreports a broadcast and rejects each attempt makes a payment fail in the end, instead of consuming nonces", async () => {
    const { devnet, start, network, pay } = await begin({
      lies: [],
      refuse: (raw) => (parseTransaction(raw).data ? "invalid transaction: not for us" : undefined),
    });
    const facilitator = await start({ network, times: { ...soon, resendMs: 20 } });
    expect(await settle(facilitator, await pay())).toMatchObject({
      success: false,
      errorReason: "invalid_exact_evm_transaction_failed",
    });
    const { relayer } = devnet.accounts;
    expect(await devnet.client.getTransactionCount({ address: relayer.address })).toBe(8);
  });

  it("a node that misreports a broadcast as unaffordable for the relayer gets no higher offer", async () => {
    const refusal = { isForwarded: false, says: "insufficient funds for gas * price + value" };
    const { start, network, pay, broadcasts, lies } = await begin({
      lies: Array.from({ length: 6 }, () => refusal),
    });
    const facilitator = await start({
      network,
      times: { ...soon, resendMs: 50, replaceMs: 200 },
    });
    const settled = settle(facilitator, await pay());
    await vi.waitFor(() => expect(lies.length).toBe(0), 20_000);
    expect(broadcasts.size).toBe(1);
    expect(await settled).toMatchObject({ success: true });
  });

  it("a node that misreports a broadcast as underpriced at every price does not raise the fee without end", async () => {
    const refusal = { isForwarded: false, says: "transaction underpriced" };
    const { devnet, start, network, pay, broadcasts, lies } = await begin({
      lies: Array.from({ length: 200 }, () => refusal),
    });
    const requests = holdRequests();
    const facilitator = await start({
      network,
      times: { ...soon, resendMs: 200, replaceMs: 800 },
      ...requests.options,
    });
    const paid = await pay();
    const pending = settle(facilitator, paid);
    await vi.waitFor(() => expect(lies.length).toBeLessThan(180), 60_000);
    requests.end();
    expect(await pending).toMatchObject({ errorReason: "settlement_pending" });
    const fees = [...broadcasts].map((raw) => parseTransaction(raw).maxFeePerGas ?? 0n);
    expect(fees.length).toBeGreaterThan(2);
    expect(Math.max(...fees.map(Number))).toBeLessThan(4 * Math.min(...fees.map(Number)));
    lies.length = 0;
    await vi.waitFor(
      async () => expect(await settle(facilitator, paid)).toMatchObject({ success: true }),
      60_000,
    );
    const { relayer } = devnet.accounts;
    expect(await devnet.client.getTransactionCount({ address: relayer.address })).toBe(1);
  });
});

// No column holds the numbers, or no number of JavaScript. A row that has one cannot be read.
it.each([
  ["its status", { status: "maybe" }],
  ["its block", { blockNumber: "0x40000000000000" }],
  ["its gas", { gasUsed: `0x7${"f".repeat(60)}` }],
])("a node that misreports one receipt by %s delays its transaction alone", async (_, lie) => {
  const here = await startSettlingDevnet("sqlite");
  settling = here;
  let first: unknown;
  let isMended = false;
  let malformed = 0;
  proxy = await startNodeProxy(here.devnet.rpcUrl, async ({ method, params: [hash] }, ask) => {
    if (method === "eth_sendRawTransaction" && first === undefined && isHex(hash)) {
      first = keccak256(hash);
    }
    const answer = await ask();
    if (method !== "eth_getTransactionReceipt" || hash !== first || isMended) return answer;
    const { result } = receiptSchema.parse(answer);
    if (result === null) return answer;
    malformed += 1;
    return { result: { ...result, ...lie } };
  });
  const network = { rpcUrls: [proxy.url], blockTimeSeconds: 1 };
  const facilitator = await here.start({ network, maxPaymentsPerTransaction: 1 });
  const delayed = settle(facilitator, await here.pay());
  await vi.waitFor(() => expect(malformed).toBeGreaterThan(0), 20_000);
  expect(await settle(facilitator, await here.pay())).toMatchObject({ success: true });
  isMended = true;
  expect(await delayed).toMatchObject({ success: true, transaction: first });
  expect(await here.balanceOf(here.devnet.accounts.seller.address)).toBe(2_000n);
});

it("a node without a readable receipt of a dropped transaction gets it again, replaced", async () => {
  const here = await startSettlingDevnet("sqlite");
  settling = here;
  let first: Hex | undefined;
  proxy = await startNodeProxy(here.devnet.rpcUrl, async ({ method, params: [hash] }, ask) => {
    if (method === "eth_sendRawTransaction" && isHex(hash)) {
      first ??= keccak256(hash);
      // It drops the transaction.
      if (first === keccak256(hash)) return { result: first };
    }
    if (method !== "eth_getTransactionReceipt" || hash !== first) return ask();
    return { error: { code: -32603, message: "internal error" } };
  });
  const warnings: string[] = [];
  const note = () => undefined;
  const warn = (_fields: object, text?: string) => void warnings.push(text ?? "");
  const facilitator = await here.start({
    network: { rpcUrls: [proxy.url], blockTimeSeconds: 1 },
    maxPaymentsPerTransaction: 1,
    times: { resendMs: 100, replaceMs: 500 },
    logger: { debug: note, info: note, warn, error: note },
  });
  const payments = [await here.pay(), await here.pay()];
  const settled = await Promise.all(payments.map((paid) => settle(facilitator, paid)));
  expect(settled.map(({ success }) => success)).toEqual([true, true]);
  expect(warnings.filter((text) => text.includes("receipt cannot be read"))).toHaveLength(1);
});

it("a node without a readable receipt of a mined transaction does not make it lost", async () => {
  const here = await startSettlingDevnet("sqlite");
  settling = here;
  let first: unknown;
  let isMended = false;
  let asked = 0;
  proxy = await startNodeProxy(here.devnet.rpcUrl, async ({ method, params: [hash] }, ask) => {
    if (method === "eth_sendRawTransaction" && isHex(hash)) first ??= keccak256(hash);
    if (method === "eth_getTransactionCount" && first !== undefined) asked += 1;
    if (method !== "eth_getTransactionReceipt" || hash !== first || isMended) return ask();
    return { error: { code: -32603, message: "internal error" } };
  });
  const facilitator = await here.start({
    network: { rpcUrls: [proxy.url], blockTimeSeconds: 1 },
    times: { resendMs: 50, replaceMs: 50, loseMs: 1 },
  });
  const settled = settle(facilitator, await here.pay());
  await vi.waitFor(() => expect(asked).toBeGreaterThan(3), 20_000);
  const metric = "coinslot_transactions_total";
  expect(await facilitator.metrics.getSingleMetricAsString(metric)).not.toContain('event="lost"');
  isMended = true;
  expect(await settled).toMatchObject({ success: true, transaction: first });
});

it("a transaction that is mined before its broadcast is answered is settled by its receipt, and never lost", async () => {
  const here = await startSettlingDevnet("sqlite");
  settling = here;
  const { devnet, pay } = here;
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const seen: Hex[] = [];
  let [refused, receipts, isBehind] = [0, 0, true];
  proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [raw] }, ask) => {
    if (method === "eth_sendRawTransaction" && isHex(raw)) {
      const hash = keccak256(raw);
      if (hash === seen[1]) {
        refused += 1;
        return { error: { code: -32000, message: "nonce too low: next nonce 2, tx nonce 1" } };
      }
      const answer = await ask();
      if (!seen.includes(hash)) seen.push(hash);
      if (hash === seen[1]) await opened;
      return answer;
    }
    const isCounted = seen.length < 2 || refused > 0;
    if (method === "eth_getTransactionCount" && !isCounted) return { result: "0x0" };
    if (method !== "eth_getTransactionReceipt" || !isBehind) return ask();
    if (refused > 0) receipts += 1;
    return { result: null };
  });
  const facilitator = await here.start({
    network: { rpcUrls: [proxy.url], blockTimeSeconds: 1 },
    maxPaymentsPerTransaction: 1,
    times: { resendMs: 50, replaceMs: 60_000, loseMs: 60_000 },
  });
  await devnet.setAutomine(false);
  const first = settle(facilitator, await pay());
  const untilPending = (count: number) =>
    vi.waitFor(
      async () => expect((await devnet.client.getTxpoolStatus()).pending).toBe(count),
      20_000,
    );
  await untilPending(1);
  // The polls for the first one send the second again, whose broadcast waits for its answer.
  const second = settle(facilitator, await pay());
  await untilPending(2);
  await devnet.setAutomine(true);
  await devnet.mine();
  // The nonces count as used now, and the receipts are not there yet.
  await vi.waitFor(() => expect(receipts).toBeGreaterThan(4), 20_000);
  isBehind = false;
  open();
  expect(await first).toMatchObject({ success: true, transaction: seen[0] });
  expect(await second).toMatchObject({ success: true, transaction: seen[1] });
  const metric = "coinslot_transactions_total";
  const counted = await facilitator.metrics.getSingleMetricAsString(metric);
  expect(counted).toMatch(/event="settled"} 2$/m);
  expect(counted).not.toContain('event="lost"');
});
