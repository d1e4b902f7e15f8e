import {
  createRpcPool,
  type HttpPost,
  httpPost,
  RpcClosedError,
  systemClock,
} from "@coinslot/chain";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { type AuthorizationId, type Hex, toLowerHex } from "@coinslot/protocol";
import { UpdateQueryNode } from "kysely";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import * as z from "zod";
import type { LedgerContext } from "../../ledger/ledger-context.ts";
import { listPayments } from "../../ledger/queries/list-payments.ts";
import { storeTransaction } from "../../ledger/transactions/store-transaction.ts";
import { silentLogger } from "../../logger.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { authorization, queue, takeLease, transaction } from "../../testing/ledger-payments.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { signPayment } from "../../testing/payments.ts";
import { idOf, submitAsStranger } from "../../testing/settling-actions.ts";
import { createFoundExecutions } from "../evidence/found-executions.ts";
import { createLateLogs } from "../evidence/late-logs.ts";
import { createMetrics } from "../metrics.ts";
import { createOutcomeNotifier } from "../outcome-notifier.ts";
import { endOverdue } from "./end-overdue.ts";

/** A loaded machine may need longer than a second for a request. */
const patience = { timeout: 30_000, interval: 20 };

const { join, wait } = ledgerForEachTest("sqlite");
const states = ["queued", "submitted"] as const;
type State = (typeof states)[number];

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet();
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
});
afterAll(() => devnet.stop());

/** The ledger, and the number of updates in its transactions. */
function countUpdates(ledger: LedgerContext) {
  let updates = 0;
  const counted: LedgerContext = {
    ...ledger,
    write: (work, options) =>
      ledger.write(
        (tx) =>
          work(
            tx.withPlugin({
              transformQuery({ node }) {
                if (UpdateQueryNode.is(node)) updates += 1;
                return node;
              },
              transformResult: async ({ result }) => result,
            }),
          ),
        options,
      ),
  };
  return { counted, updates: () => updates };
}

let transactions = 0;
/** Moves queued payments into a transaction. */
async function carry(ledger: LedgerContext, ids: readonly string[]): Promise<void> {
  const record = { ...transaction(transactions, ids), network: devnet.network };
  transactions += 1;
  const lease = await takeLease(ledger);
  expect(await storeTransaction(ledger, lease, record)).toBe("stored");
  await ledger.leases.release(lease);
}

/** A ledger, and the watch's look at payments past their time. */
async function begin(
  options: { rpcUrl?: string; others?: string[]; post?: HttpPost; serveAfter?: number } = {},
) {
  const { network, token, chainId, accounts } = devnet;
  const { rpcUrl = devnet.rpcUrl, others = [], post = httpPost } = options;
  const pool = createRpcPool({ chainId, rpcUrls: [rpcUrl, ...others], post, patienceMs: 100 });
  onTestFinished(() => pool.close());
  const ledger = await join("one");
  const { counted, updates } = countUpdates(ledger);
  const parts = { clock: systemClock, logger: silentLogger, emit: () => undefined };
  const metrics = createMetrics();
  const notifier = await createOutcomeNotifier({ ...parts, ledger, metrics, pollMs: 10_000 });
  onTestFinished(() => notifier.stop());
  let nowMs = 0;
  let now = Date.now;
  const lateLogs = createLateLogs({ now: () => nowMs });
  const { serveAfter = 0 } = options;
  const stopping = new AbortController();
  const watch: Parameters<typeof endOverdue>[0]["watch"] = {
    finalBlock: undefined,
    overdueAfter: { queued: "", submitted: "" },
    explaining: { queued: undefined, submitted: undefined },
    found: createFoundExecutions({ now: () => nowMs }),
    stopping: stopping.signal,
  };
  /** `aheadSeconds`: a lie about the head's time. */
  const beginLook = async ({ aheadSeconds = 0n } = {}) => {
    const { number, timestamp } = await devnet.client.getBlock();
    return endOverdue({
      context: { ledger: counted, notifier, logger: silentLogger, now },
      network: { network, rpc: pool, finalAfter: 0, serveAfter: () => serveAfter, lateLogs },
      watch,
      head: { number, timestamp: timestamp + aheadSeconds },
    });
  };
  const whenExplained = () => Promise.all(Object.values(watch.explaining));
  return {
    ledger,
    updates,
    pass: (ms: number) => {
      nowMs += ms;
    },
    setClock(ms: number) {
      now = () => ms;
    },
    /** Adds a payment whose authorization nobody executes. */
    async add(
      state: State,
      validBefore: bigint,
      { unusedAtBlock, ...changes }: Partial<AuthorizationId> & { unusedAtBlock?: bigint } = {},
    ) {
      const id = authorization({ network, asset: token, ...changes });
      const balance =
        unusedAtBlock === undefined
          ? undefined
          : { amount: 1_000_000n, blockNumber: unusedAtBlock };
      const paymentId = await queue(ledger, { id, validBefore, balance });
      if (state === "submitted") await carry(ledger, [paymentId]);
      return paymentId;
    },
    /**
     * Adds a payment past its time that another sender has executed.
     *
     * @param unusedAtBlock by default, the newest block
     */
    async addUsed(state: State, unusedAtBlock?: bigint): Promise<Hex> {
      const payTo = accounts.seller.address;
      const paid = await signPayment({ network, asset: token, signer: accounts.buyer, payTo });
      const { signature } = paid;
      const { value, validAfter } = paid.authorization;
      const id = await queue(ledger, {
        id: idOf(paid),
        value,
        validBefore: 1_000n,
        balance: {
          amount: 1_000_000n,
          blockNumber: unusedAtBlock ?? (await devnet.client.getBlockNumber()),
        },
        order: { payTo: toLowerHex(payTo), validAfter, signature },
      });
      if (state === "submitted") await carry(ledger, [id]);
      return submitAsStranger({ devnet }, paid);
    },
    beginLook,
    whenExplained,
    /** A look, with the end of what runs beside it. */
    async look(lie: Parameters<typeof beginLook>[0] = {}) {
      const undecided = await beginLook(lie);
      await whenExplained();
      return undecided;
    },
    stop: () => stopping.abort(new RpcClosedError(chainId)),
    standing: async () => {
      const { payments } = await listPayments(ledger, {});
      return payments.map(({ state, reason }) => reason ?? state);
    },
  };
}

const blockSchema = z.looseObject({ timestamp: z.string() });
const filterSchema = z.looseObject({ fromBlock: z.string() });
const callSchema = z.looseObject({ to: z.string() });
const expired = "invalid_exact_evm_payload_authorization_valid_before";
const alreadyUsed = "invalid_exact_evm_nonce_already_used";

/** A node that returns no logs, an error for them, or the true ones. */
async function startNodeOf(logs: { are: "true" | "late" | "refused" }): Promise<string> {
  const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
    if (method !== "eth_getLogs" || logs.are === "true") return ask();
    return logs.are === "late"
      ? { result: [] }
      : { error: { code: -32005, message: "query returned too much" } };
  });
  onTestFinished(() => proxy.close());
  return proxy.url;
}

/** A node that has pruned older logs. `hides`: it returns no newer ones. */
async function startPrunedNode({ hides }: { hides: boolean }): Promise<string> {
  const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [filter] }, ask) => {
    if (method !== "eth_getLogs") return ask();
    const kept = (await devnet.client.getBlockNumber({ cacheTime: 0 })) - 1_000n;
    const isOld = BigInt(filterSchema.parse(filter).fromBlock) < kept;
    if (isOld) return { error: { code: -32000, message: "history is pruned" } };
    return hides ? { result: [] } : ask();
  });
  onTestFinished(() => proxy.close());
  return proxy.url;
}

/** A node whose logs wait until it is opened. */
async function startSlowNode() {
  let waiting = 0;
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
    if (method === "eth_getLogs") {
      waiting += 1;
      await opened;
    }
    return ask();
  });
  onTestFinished(() => proxy.close());
  onTestFinished(open);
  return { url: proxy.url, open, waiting: () => waiting };
}

it("ends any number of overdue payments of a state with one batch of calls and one update", async () => {
  let batches = 0;
  const post: HttpPost = (request) => {
    if (request.body.includes("eth_call")) batches += 1;
    return httpPost(request);
  };
  const { ledger, add, look, standing, updates } = await begin({ post });
  const ids: string[] = [];
  for (let count = 0; count < 5; count += 1) ids.push(await add("queued", 1_000n));
  await carry(ledger, ids);
  for (let count = 0; count < 5; count += 1) await add("queued", 1_000n);
  expect(await look()).toEqual({ queued: false, submitted: false });
  expect(await standing()).toEqual(Array.from({ length: 10 }, () => expired));
  expect(batches).toBe(2);
  expect(updates()).toBe(2);
});

describe.each(states)("a %s payment past its time by the clock", (state) => {
  it("waits for a block whose time says so", async () => {
    const { add, look, standing, setClock } = await begin();
    const { client } = devnet;
    const { timestamp } = await client.getBlock();
    setClock(Number(timestamp + 60n) * 1000);
    await add(state, timestamp + 1n);
    expect(await look()).toMatchObject({ [state]: true });
    expect(await standing()).toEqual([state]);
    await client.setNextBlockTimestamp({ timestamp: timestamp + 1n });
    await devnet.mine();
    expect(await look()).toEqual({ queued: false, submitted: false });
    expect(await standing()).toEqual([expired]);
  });

  it("is ended by no block of a far future, before a clock has come there", async () => {
    const node = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
      const answer = await ask();
      if (method !== "eth_getBlockByNumber" || !("result" in answer)) return answer;
      return { result: { ...blockSchema.parse(answer.result), timestamp: "0xffffffff" } };
    });
    onTestFinished(() => node.close());
    const { add, look, standing, setClock } = await begin({ rpcUrl: node.url });
    const { timestamp } = await devnet.client.getBlock();
    setClock(Number(timestamp) * 1_000);
    await add(state, timestamp + 300n);
    await look({ aheadSeconds: 1_000_000n });
    expect(await standing()).toEqual([state]);
    setClock(Number(timestamp + 300n) * 1_000);
    await look({ aheadSeconds: 1_000_000n });
    expect(await standing()).toEqual([expired]);
  });

  it("is ended by no look that fails, however long nodes are away", async () => {
    const post: HttpPost = async () => {
      throw new Error("The connection was refused");
    };
    const { add, look, standing, pass } = await begin({ post });
    await add(state, 1_000n);
    for (let round = 0; round < 3; round += 1) {
      await look().catch(() => undefined);
      pass(20_000);
    }
    expect(await standing()).toEqual([state]);
  });
});

describe.each(states)("a %s payment past its time that another sender has executed", (state) => {
  it("is confirmed by its logs, however long a node refuses them", async () => {
    const logs: Parameters<typeof startNodeOf>[0] = { are: "refused" };
    const { addUsed, look, standing, pass } = await begin({ rpcUrl: await startNodeOf(logs) });
    await addUsed(state);
    for (let round = 0; round < 3; round += 1) {
      expect(await look()).toMatchObject({ [state]: true });
      pass(20_000);
    }
    expect(await standing()).toEqual([state]);
    logs.are = "true";
    await look();
    expect(await standing()).toEqual(["confirmed"]);
    expect(await look()).toEqual({ queued: false, submitted: false });
  });

  it.each([
    ["all", false],
    ["the newer", true],
  ])(
    "is confirmed by another node with %s logs, where the first hides newer and lacks older ones",
    async (_, isPruned) => {
      const first = await startPrunedNode({ hides: true });
      const others = [isPruned ? await startPrunedNode({ hides: false }) : devnet.rpcUrl];
      const { addUsed, look, standing } = await begin({ rpcUrl: first, others });
      // In small parts: a node mines for seconds.
      while ((await devnet.client.getBlockNumber({ cacheTime: 0 })) < 1_100n)
        await devnet.mine(100);
      await addUsed(state, 1n);
      await look();
      expect(await standing()).toEqual(["confirmed"]);
    },
  );

  it("waits ten seconds for late logs, and fails then", async () => {
    const rpcUrl = await startNodeOf({ are: "late" });
    const { addUsed, look, standing, pass } = await begin({ rpcUrl });
    await addUsed(state);
    expect(await look()).toMatchObject({ [state]: true });
    pass(9_999);
    expect(await look()).toMatchObject({ [state]: true });
    expect(await standing()).toEqual([state]);
    pass(1);
    await look();
    expect(await standing()).toEqual([alreadyUsed]);
    expect(await look()).toEqual({ queued: false, submitted: false });
  });

  it("fails where each search for its late logs takes longer than ten minutes", async () => {
    const rpcUrl = await startNodeOf({ are: "late" });
    const { addUsed, look, standing, pass } = await begin({ rpcUrl });
    await addUsed(state);
    expect(await look()).toMatchObject({ [state]: true });
    pass(3_600_000);
    await look();
    expect(await standing()).toEqual([alreadyUsed]);
  });

  it("holds up no look while a node is slow with its logs", async () => {
    const { url, open, waiting } = await startSlowNode();
    const { add, addUsed, beginLook, whenExplained, look, standing } = await begin({ rpcUrl: url });
    await addUsed(state);
    expect(await beginLook()).toMatchObject({ [state]: true });
    await vi.waitFor(() => expect(waiting()).toBe(1), patience);
    wait(1);
    await add(state, 1_000n);
    expect(await beginLook()).toMatchObject({ [state]: true });
    expect((await standing()).sort()).toEqual([expired, state].sort());
    open();
    await whenExplained();
    expect((await standing()).sort()).toEqual(["confirmed", expired]);
    expect(waiting()).toBe(1);
    expect(await look()).toEqual({ queued: false, submitted: false });
  });

  it("is left as it is by a search that ends with the watch", async () => {
    const { url, open, waiting } = await startSlowNode();
    const nodes = { rpcUrl: url, others: [devnet.rpcUrl] };
    const { addUsed, beginLook, whenExplained, stop, standing } = await begin(nodes);
    await addUsed(state);
    await beginLook();
    await vi.waitFor(() => expect(waiting()).toBe(1), patience);
    stop();
    await whenExplained();
    expect(await standing()).toEqual([state]);
    open();
  });

  it("is confirmed once enough blocks stand on its own, and asked for once at each head", async () => {
    let calls = 0;
    const post: HttpPost = (request) => {
      if (/eth_call|eth_getLogs/.test(request.body)) calls += 1;
      return httpPost(request);
    };
    const { addUsed, look, standing } = await begin({ post, serveAfter: 2 });
    await addUsed(state);
    expect(await look()).toMatchObject({ [state]: true });
    const first = calls;
    expect(first).toBeGreaterThan(0);
    expect(await look()).toMatchObject({ [state]: true });
    expect(calls).toBe(first);
    await devnet.mine(1);
    expect(await look()).toMatchObject({ [state]: true });
    expect(calls).toBeGreaterThan(first);
    expect(await standing()).toEqual([state]);
    await devnet.mine(1);
    await look();
    expect(await standing()).toEqual(["confirmed"]);
  });
});

it("a queued payment past its time whose token does not answer is held for ten seconds, and not longer", async () => {
  const asset = "0x00000000000000000000000000000000000a55e7";
  // Returns 32 bytes of 0xff.
  await devnet.client.setCode({ address: asset, bytecode: "0x5f195f5260205ff3" });
  const { add, look, standing, pass } = await begin();
  await add("queued", 1_000n, { asset });
  await add("queued", 1_000n);
  expect(await look()).toMatchObject({ queued: true });
  expect((await standing()).sort()).toEqual([expired, "queued"]);
  pass(10_000);
  await look();
  expect(await standing()).toEqual([expired, expired]);
});

it("payments past their time whose logs are refused hide no later one", async () => {
  const asset = "0x00000000000000000000000000000000000a55e8";
  const node = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [call] }, ask) => {
    if (method === "eth_getLogs") return { error: { code: -32005, message: "too many results" } };
    // The token's own answer, without a way to the node for each payment.
    if (method === "eth_call" && callSchema.safeParse(call).data?.to === asset) {
      return { result: `0x${"ff".repeat(32)}` };
    }
    return ask();
  });
  onTestFinished(() => node.close());
  const { add, look, standing } = await begin({ rpcUrl: node.url });
  const unusedAtBlock = await devnet.client.getBlockNumber();
  const held = Array.from({ length: 500 }, () => add("queued", 1_000n, { asset, unusedAtBlock }));
  await Promise.all(held);
  wait(1);
  await add("queued", 1_000n);
  expect(await look()).toMatchObject({ queued: true });
  expect(await look()).toMatchObject({ queued: true });
  const states = await standing();
  expect(states.filter((each) => each === expired)).toHaveLength(1);
  // From the first one again: they are past their time as before.
  expect(await look()).toMatchObject({ queued: true });
});

it("a queued payment that a planner moves into a transaction during the look is left to it", async () => {
  let ids: string[] = [];
  const post: HttpPost = async (request) => {
    if (request.body.includes("eth_call")) await carry(ledger, ids);
    return httpPost(request);
  };
  const { ledger, add, look, standing } = await begin({ post });
  ids = [await add("queued", 1_000n)];
  await look();
  expect(await standing()).toEqual(["submitted"]);
});
