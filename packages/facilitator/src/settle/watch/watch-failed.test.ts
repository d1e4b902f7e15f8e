import { createRpcPool, RpcClosedError, systemClock } from "@coinslot/chain";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { type Address, type Network, toLowerHex } from "@coinslot/protocol";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import * as z from "zod";
import type { LedgerContext } from "../../ledger/ledger-context.ts";
import { recordOutcomes } from "../../ledger/payments/record-outcomes.ts";
import { findFailed } from "../../ledger/queries/find-watched.ts";
import { silentLogger } from "../../logger.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { authorization, queue, stateOf } from "../../testing/ledger-payments.ts";
import { type Intercept, startNodeProxy } from "../../testing/node-proxy.ts";
import { signPayment } from "../../testing/payments.ts";
import { cancel, idOf, submitAsStranger } from "../../testing/settling-actions.ts";
import { createFoundExecutions } from "../evidence/found-executions.ts";
import { createLateLogs } from "../evidence/late-logs.ts";
import { createMetrics } from "../metrics.ts";
import { createOutcomeNotifier } from "../outcome-notifier.ts";
import { watchFailed } from "./watch-failed.ts";

/** A loaded machine may need longer than a second for a request. */
const patience = { timeout: 30_000, interval: 20 };

const { join } = ledgerForEachTest("sqlite");
/** `authorizationState(address,bytes32)`, EIP-3009. */
const stateSelector = "0xe94a0102";
const callSchema = z.object({ data: z.string() });
/** A node on which no authorization was ever used. */
const hiding: Intercept = async ({ method, params: [call] }, ask) => {
  if (method === "eth_getLogs") return { result: [] };
  const isState = callSchema.safeParse(call).data?.data.startsWith(stateSelector);
  return isState ? { result: `0x${"0".repeat(64)}` } : ask();
};
const otherToken = `0x${"0b".repeat(20)}` as const;
const word = z.string();
const filterSchema = z.object({
  address: word,
  fromBlock: word.transform(Number),
  toBlock: word,
  topics: z.tuple([z.tuple([word, word]), z.array(word), z.array(word)]),
});

/** Time of an endpoint in a search for ends. */
const longestSearchMs = 1_200_000;

/** The watch of a ledger's failed payments over nodes. */
async function begin(options: { rpcUrls: string[]; chainId: number; network: Network }) {
  const { rpcUrls, chainId, network } = options;
  const rpc = createRpcPool({ chainId, rpcUrls, patienceMs: 0, restMs: 1 });
  onTestFinished(() => rpc.close());
  const ledger = await join("one");
  const parts = { clock: systemClock, logger: silentLogger, emit: () => undefined };
  const metrics = createMetrics();
  const notifier = await createOutcomeNotifier({ ...parts, ledger, metrics, pollMs: 10_000 });
  onTestFinished(() => notifier.stop());
  let nowMs = 0;
  const cuts = new Set<() => void>();
  const stopping = new AbortController();
  const watch: Parameters<typeof watchFailed>[0] = {
    context: {
      ledger,
      notifier,
      clock: {
        now: () => nowMs,
        setTimer(run, ms) {
          if (ms !== longestSearchMs) return systemClock.setTimer(run, ms);
          cuts.add(run);
          return () => cuts.delete(run);
        },
      },
      logger: silentLogger,
      times: { settlingMs: 0 },
    },
    network: { network, rpc, serveAfter: () => 0, finalAfter: 0 },
    searchedTo: new Map(),
    searchAgainAt: new Map(),
    found: createFoundExecutions({ now: () => nowMs }),
    resumeAfter: "",
    failedAt: undefined,
    finalBlock: undefined,
    closingLogs: createLateLogs({ now: () => nowMs }),
    nextEndsAt: new Map(),
    closing: undefined,
    searching: undefined,
    search: undefined,
    stopping: stopping.signal,
    onLost: () => undefined,
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  /** A look at a head, with the end of what runs beside it. */
  const look = async (head: bigint) => {
    await watchFailed(watch, head);
    await watch.searching;
    await watch.closing;
  };
  /** Ends the time of the searches under way. */
  const cut = () => {
    for (const run of cuts) run();
  };
  const stop = () => stopping.abort(new RpcClosedError(chainId));
  return { ledger, watch, pass, look, cut, stop };
}

/**
 * A failed payment that a sender may execute. The ledger takes its time for over by default.
 *
 * @param options `unusedAtBlock`: by default, the newest block
 */
async function fail(
  devnet: Devnet,
  ledger: LedgerContext,
  options: { validBefore?: bigint | undefined; unusedAtBlock?: bigint } = {},
) {
  const { validBefore = 1_000n, unusedAtBlock } = options;
  const { network, token, accounts, client } = devnet;
  await devnet.mint({ to: accounts.buyer.address, amount: 1_000n });
  const payTo = accounts.seller.address;
  const paid = await signPayment({ network, asset: token, signer: accounts.buyer, payTo });
  const { value, validAfter } = paid.authorization;
  const id = await queue(ledger, {
    id: idOf(paid),
    value,
    validBefore,
    balance: { amount: 1_000n, blockNumber: unusedAtBlock ?? (await client.getBlockNumber()) },
    order: { payTo: toLowerHex(payTo), validAfter, signature: paid.signature },
  });
  const reason = "invalid_exact_evm_insufficient_balance";
  await recordOutcomes(ledger, [{ failed: [{ ids: [id], reason }] }]);
  return { id, paid };
}

async function failQueued(
  ledger: LedgerContext,
  options: { network: Network; asset: Address; validBefore?: bigint },
) {
  const { validBefore, ...place } = options;
  const id = await queue(ledger, { id: authorization(place), ...(validBefore && { validBefore }) });
  const reason = "invalid_exact_evm_transaction_failed";
  await recordOutcomes(ledger, [{ failed: [{ ids: [id], reason }] }]);
}

it.each([
  ["is confirmed by them", true, "confirmed"],
  ["is closed after a while without them", false, "failed"],
] as const)(
  "a failed payment that is used in the last block of its time, with late logs, %s",
  async (_, come, state) => {
    const devnet = await startDevnet();
    onTestFinished(() => devnet.stop());
    const { network, client } = devnet;
    let isLate = true;
    const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) =>
      method === "eth_getLogs" && isLate ? { result: [] } : ask(),
    );
    onTestFinished(() => proxy.close());
    const { ledger, look, pass } = await begin({ ...devnet, rpcUrls: [proxy.url] });
    const { id, paid } = await fail(devnet, ledger);
    await submitAsStranger({ devnet }, paid);
    // Later than the blocks that each search repeats.
    await devnet.mine(20);
    await look(await client.getBlockNumber());
    expect(await findFailed(ledger, { network, limit: 10 })).toHaveLength(1);
    if (come) isLate = false;
    else pass(60_000);
    await devnet.mine();
    await look(await client.getBlockNumber());
    expect(await stateOf(ledger, id)).toBe(state);
    expect(await findFailed(ledger, { network, limit: 10 })).toEqual([]);
  },
);

it.each([
  ["is confirmed by its execution", true, "confirmed"],
  ["is closed without one", false, "failed"],
])(
  "a failed payment that a node showed as unused in a made-up block %s",
  async (_, isExecuted, state) => {
    const devnet = await startDevnet();
    onTestFinished(() => devnet.stop());
    const { ledger, look } = await begin({ ...devnet, rpcUrls: [devnet.rpcUrl] });
    const { id, paid } = await fail(devnet, ledger, { unusedAtBlock: 1_000_000_000n });
    if (isExecuted) await submitAsStranger({ devnet }, paid);
    await devnet.mine(20);
    await look(await devnet.client.getBlockNumber());
    expect(await stateOf(ledger, id)).toBe(state);
    expect(await findFailed(ledger, { network: devnet.network, limit: 10 })).toEqual([]);
  },
);

/** A node whose queries for some logs wait until it is opened. */
function createGate() {
  let waiting = 0;
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const intercept =
    (isSlow: (filter: z.infer<typeof filterSchema>) => boolean): Intercept =>
    async ({ method, params: [filter] }, ask) => {
      if (method === "eth_getLogs" && isSlow(filterSchema.parse(filter))) {
        waiting += 1;
        await opened;
      }
      return ask();
    };
  return { intercept, open, waiting: () => waiting };
}

/** A node that has pruned the logs of its first blocks. */
const prunedBelow = 100;
const pruning: Intercept = async ({ method, params: [filter] }, ask) => {
  const isOld =
    method === "eth_getLogs" && (filterSchema.safeParse(filter).data?.fromBlock ?? 0) < prunedBelow;
  return isOld ? { error: { code: -32000, message: "history is pruned" } } : ask();
};

/** Mines more blocks than one query has. In small parts: a node mines for seconds. */
async function mineRange(devnet: Devnet): Promise<void> {
  for (let part = 0; part < 12; part += 1) await devnet.mine(100);
}

it("a failed payment is confirmed beside an older one of its token, whose logs are pruned", async () => {
  const devnet = await startDevnet();
  onTestFinished(() => devnet.stop());
  const { network, client } = devnet;
  const proxy = await startNodeProxy(devnet.rpcUrl, pruning);
  onTestFinished(() => proxy.close());
  const { ledger, look } = await begin({ ...devnet, rpcUrls: [proxy.url] });
  const old = await fail(devnet, ledger);
  await mineRange(devnet);
  const young = await fail(devnet, ledger);
  await submitAsStranger({ devnet }, young.paid);
  await devnet.mine(20);
  await look(await client.getBlockNumber());
  expect(await stateOf(ledger, young.id)).toBe("confirmed");
  // The older one is unused, and its time is over.
  expect(await stateOf(ledger, old.id)).toBe("failed");
  expect(await findFailed(ledger, { network, limit: 10 })).toEqual([]);
});

it("a failed payment is searched once a minute in blocks whose logs no node has", async () => {
  const devnet = await startDevnet();
  onTestFinished(() => devnet.stop());
  const { client } = devnet;
  let isPruned = true;
  let refused = 0;
  const proxy = await startNodeProxy(devnet.rpcUrl, async (call, ask) => {
    const answer = isPruned ? await pruning(call, ask) : await ask();
    if (answer && "error" in answer) refused += 1;
    return answer;
  });
  onTestFinished(() => proxy.close());
  const { ledger, look, pass } = await begin({ ...devnet, rpcUrls: [proxy.url] });
  const { id, paid } = await fail(devnet, ledger, { validBefore: 2n ** 40n });
  await submitAsStranger({ devnet }, paid);
  await mineRange(devnet);
  const lookAtHead = async () => look(await client.getBlockNumber({ cacheTime: 0 }));
  await lookAtHead();
  const first = refused;
  expect(first).toBeGreaterThan(0);
  await lookAtHead();
  await devnet.mine();
  await lookAtHead();
  expect(refused).toBe(first);
  pass(60_000);
  await lookAtHead();
  expect(refused).toBeGreaterThan(first);
  expect(await stateOf(ledger, id)).toBe("failed");
  isPruned = false;
  pass(60_000);
  await lookAtHead();
  expect(await stateOf(ledger, id)).toBe("confirmed");
});

it.each([
  ["was cancelled in a block that is not final", true],
  ["was executed in a block with too few on top of it", false],
])("a failed payment that %s is searched once at each head", async (_, isCancelled) => {
  const devnet = await startDevnet();
  onTestFinished(() => devnet.stop());
  let searches = 0;
  const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
    if (method === "eth_getLogs") searches += 1;
    return ask();
  });
  onTestFinished(() => proxy.close());
  const { ledger, watch, look, pass } = await begin({ ...devnet, rpcUrls: [proxy.url] });
  watch.network = { ...watch.network, serveAfter: () => 3, finalAfter: 3 };
  const { id, paid } = await fail(devnet, ledger, { validBefore: 2n ** 40n });
  await (isCancelled
    ? cancel({ devnet }, devnet.accounts.buyer, paid)
    : submitAsStranger({ devnet }, paid));
  const lookAtHead = async () => {
    const before = searches;
    await look(await devnet.client.getBlockNumber({ cacheTime: 0 }));
    return searches - before;
  };
  expect(await lookAtHead()).toBeGreaterThan(0);
  expect(await lookAtHead()).toBe(0);
  await devnet.mine();
  expect(await lookAtHead()).toBeGreaterThan(0);
  expect(await lookAtHead()).toBe(0);
  pass(60_000);
  expect(await lookAtHead()).toBeGreaterThan(0);
  // Blocks may have left.
  watch.found.clear();
  expect(await lookAtHead()).toBeGreaterThan(0);
  await devnet.mine(3);
  await lookAtHead();
  expect(await stateOf(ledger, id)).toBe(isCancelled ? "failed" : "confirmed");
  expect(await findFailed(ledger, { network: devnet.network, limit: 10 })).toEqual([]);
});

it.each([
  ["is not confirmed beside two others", 2, [], "failed", false],
  [
    "is not confirmed beside two others, one of which fails in the first look",
    2,
    [1],
    "failed",
    false,
  ],
  ["is not confirmed beside two others that show it as cancelled", 2, [], "failed", true],
  ["is confirmed beside a single other", 1, [], "confirmed", false],
] as const)(
  "a failed payment that the last endpoint alone shows as executed %s",
  async (_, others, failing, state, isCancelled) => {
    const devnet = await startDevnet();
    onTestFinished(() => devnet.stop());
    const fork = await startDevnet();
    onTestFinished(() => fork.stop());
    const rpcUrls: string[] = [];
    let isFirstLook = true;
    for (let index = 0; index < others; index += 1) {
      const fails = failing.some((each) => each === index);
      const proxy = await startNodeProxy(devnet.rpcUrl, async (__, ask) =>
        fails && isFirstLook ? { error: { code: -32603, message: "Internal error" } } : ask(),
      );
      onTestFinished(() => proxy.close());
      rpcUrls.push(proxy.url);
    }
    rpcUrls.push(fork.rpcUrl);
    const { ledger, look } = await begin({ ...devnet, rpcUrls });
    const { id, paid } = await fail(devnet, ledger);
    await fork.mint({ to: fork.accounts.buyer.address, amount: 1_000n });
    await submitAsStranger({ devnet: fork }, paid);
    if (isCancelled) await cancel({ devnet }, devnet.accounts.buyer, paid);
    await devnet.mine(5);
    await fork.mine(5);

    await look(await devnet.client.getBlockNumber());
    isFirstLook = false;
    await devnet.mine();
    await look(await devnet.client.getBlockNumber({ cacheTime: 0 }));

    expect(await stateOf(ledger, id)).toBe(state);
    const watched = await findFailed(ledger, { network: devnet.network, limit: 10 });
    expect(watched).toHaveLength(state === "failed" ? 1 : 0);
  },
);

describe("a failed payment whose execution the first endpoint hides", () => {
  /** The first endpoint shows no use of the payment, or another one. */
  async function hide(
    other: Intercept,
    options: {
      liar?: Intercept;
      validBefore?: bigint;
      unusedAtBlock?: bigint;
    } = {},
  ) {
    const { liar = hiding, validBefore, unusedAtBlock } = options;
    const place = unusedAtBlock === undefined ? {} : { unusedAtBlock };
    const devnet = await startDevnet();
    onTestFinished(() => devnet.stop());
    const rpcUrls: string[] = [];
    for (const intercept of [liar, other]) {
      const proxy = await startNodeProxy(devnet.rpcUrl, intercept);
      onTestFinished(() => proxy.close());
      rpcUrls.push(proxy.url);
    }
    const { ledger, watch, pass, cut, stop } = await begin({ ...devnet, rpcUrls });
    const { id, paid } = await fail(devnet, ledger, { validBefore, ...place });
    const beginLook = async () => {
      await devnet.mine();
      await watchFailed(watch, await devnet.client.getBlockNumber());
      await watch.searching;
    };
    const look = async (during?: () => Promise<void>) => {
      await beginLook();
      await during?.();
      await watch.closing;
      const watched = await findFailed(ledger, { network: devnet.network, limit: 10 });
      return watched.some(({ payment }) => payment.id === id) ? "watched" : stateOf(ledger, id);
    };
    /** Another failed payment, whose token is no contract. */
    const failOther = () =>
      failQueued(ledger, { network: devnet.network, asset: otherToken, validBefore: 1_000n });
    return { devnet, ledger, watch, paid, beginLook, look, pass, cut, stop, failOther };
  }

  it("is confirmed by another", async () => {
    const { devnet, paid, look } = await hide((_, ask) => ask());
    await submitAsStranger({ devnet }, paid);
    await devnet.mine(20);
    expect(await look()).toBe("confirmed");
  });

  it("is confirmed by another beside any number of made-up logs", async () => {
    const makeUp: Intercept = async (call, ask) => {
      if (call.method !== "eth_getLogs") return hiding(call, ask);
      const { topics, toBlock } = filterSchema.parse(call.params[0]);
      const [[used], ...others] = topics;
      const log = { blockNumber: toBlock, transactionHash: "0x", topics: [used, ...others.flat()] };
      return { result: Array.from({ length: 150_000 }, () => log) };
    };
    const { devnet, paid, look } = await hide((_, ask) => ask(), { liar: makeUp });
    await submitAsStranger({ devnet }, paid);
    expect(await look()).toBe("confirmed");
  });

  it("is confirmed by another that has pruned older logs, where its trial's block was made up", async () => {
    const { devnet, paid, look } = await hide(pruning, { unusedAtBlock: 1_000_000_000n });
    await mineRange(devnet);
    await submitAsStranger({ devnet }, paid);
    expect(await look()).toBe("confirmed");
  });

  it("holds up no look while another is slow", async () => {
    const gate = createGate();
    const { devnet, paid, watch, beginLook, look } = await hide(gate.intercept(() => true));
    await submitAsStranger({ devnet }, paid);
    await beginLook();
    const { closing } = watch;
    expect(closing).toBeDefined();
    await vi.waitFor(() => expect(gate.waiting()).toBe(1), patience);
    await beginLook();
    expect(watch.closing).toBe(closing);
    gate.open();
    expect(await look()).toBe("confirmed");
  });

  it("holds up no look while the first is slow", async () => {
    const gate = createGate();
    const liar = gate.intercept(() => true);
    const { devnet, paid, watch, look } = await hide((_, ask) => ask(), { liar });
    await submitAsStranger({ devnet }, paid);
    await watchFailed(watch, await devnet.client.getBlockNumber());
    const { searching } = watch;
    expect(searching).toBeDefined();
    await vi.waitFor(() => expect(gate.waiting()).toBe(1), patience);
    await watchFailed(watch, await devnet.client.getBlockNumber());
    expect(watch.searching).toBe(searching);
    gate.open();
    await searching;
    expect(await look()).toBe("confirmed");
  });

  it("is searched no more once the watch ends", async () => {
    const gate = createGate();
    const liar = gate.intercept(() => true);
    const { devnet, watch, stop } = await hide((_, ask) => ask(), { liar });
    await devnet.mine();
    await watchFailed(watch, await devnet.client.getBlockNumber());
    await vi.waitFor(() => expect(gate.waiting()).toBe(1), patience);
    stop();
    await watch.searching;
    expect(watch.searchedTo.size).toBe(0);
    gate.open();
  });

  it.each([
    ["all blocks may have left", (_head: bigint) => -1n, undefined],
    ["blocks were missed", (head: bigint) => head - 2n, -2n],
  ])("is searched again as far as %s meanwhile", async (_, kept, behind) => {
    const gate = createGate();
    const liar = gate.intercept(() => true);
    const options = { liar, validBefore: 2n ** 40n };
    const { devnet, watch, look } = await hide((__, ask) => ask(), options);
    await devnet.mine(5);
    const head = await devnet.client.getBlockNumber();
    await watchFailed(watch, head);
    await vi.waitFor(() => expect(gate.waiting()).toBe(1), patience);
    if (watch.search) watch.search.keptTo = kept(head);
    gate.open();
    await watch.searching;
    const [searched] = watch.searchedTo.values();
    expect(searched).toBe(behind === undefined ? undefined : head + behind);
    await look();
    expect(watch.searchedTo.size).toBe(1);
  });

  it("is polled for again where it was queued while it was searched", async () => {
    const gate = createGate();
    const liar = gate.intercept(() => true);
    const options = { liar, validBefore: 2n ** 40n };
    const { devnet, ledger, watch, look } = await hide((_, ask) => ask(), options);
    await devnet.mine();
    const head = await devnet.client.getBlockNumber();
    await watchFailed(watch, head);
    await vi.waitFor(() => expect(gate.waiting()).toBe(1), patience);
    const become = (state: "queued" | "failed") =>
      ledger.db.updateTable("payments").set({ state }).execute();
    await become("queued");
    await watchFailed(watch, head);
    expect(watch.failedAt).toBeUndefined();
    gate.open();
    await watch.searching;
    await become("failed");
    await look();
    expect(watch.failedAt).toBeDefined();
  });

  it("is not closed by a search that ends with the watch", async () => {
    const gate = createGate();
    const other = gate.intercept(({ fromBlock }) => fromBlock === 0);
    const { devnet, paid, watch, beginLook, look, pass, stop } = await hide(other, {
      unusedAtBlock: 15n,
    });
    await submitAsStranger({ devnet }, paid);
    await devnet.mine(20);
    // Its logs may be late.
    expect(await look()).toBe("watched");
    pass(60_000);
    await beginLook();
    await vi.waitFor(() => expect(gate.waiting()).toBe(1), patience);
    stop();
    await watch.closing;
    expect(await look()).toBe("watched");
    gate.open();
  });

  it("is closed once the search of older logs was too slow for ten minutes", async () => {
    const gate = createGate();
    const slow = gate.intercept(({ fromBlock }) => fromBlock === 0);
    const { devnet, paid, watch, look, pass, cut } = await hide(slow, {
      liar: slow,
      unusedAtBlock: 15n,
    });
    await submitAsStranger({ devnet }, paid);
    await devnet.mine(20);
    const lookUntilCut = () =>
      look(async () => {
        const before = gate.waiting();
        await vi.waitFor(
          () => expect(watch.closing === undefined || gate.waiting() === before + 2).toBe(true),
          patience,
        );
        cut();
      });
    let looks = 0;
    for (; (await lookUntilCut()) === "watched"; looks += 1) pass(140_000);
    expect(looks).toBeGreaterThan(4);
    expect(await look()).toBe("failed");
    gate.open();
  });

  it("waits for another that does not answer, ten minutes at most", async () => {
    let isSilent = true;
    const { devnet, paid, look, pass } = await hide(async (_, ask) =>
      isSilent ? { error: { code: -32000, message: "header not found" } } : ask(),
    );
    await submitAsStranger({ devnet }, paid);
    await devnet.mine(20);
    for (let count = 0; count < 4; count += 1) {
      expect(await look()).toBe("watched");
      pass(140_000);
    }
    isSilent = false;
    expect(await look()).toBe("confirmed");
  });

  it("is closed once another was silent for ten minutes", async () => {
    const { look, pass } = await hide(async () => ({ error: { code: -32000, message: "no" } }));
    for (let count = 0; count < 5; count += 1) {
      expect(await look()).toBe("watched");
      pass(140_000);
    }
    expect(await look()).toBe("failed");
  });

  it.each([
    ["logs of its token alone", "eth_getLogs", { error: { code: -32005, message: "too many" } }],
    ["receipt", "eth_getTransactionReceipt", { result: null }],
    ["readable receipt", "eth_getTransactionReceipt", { result: { status: "maybe" } }],
  ] as const)("waits for another that returns no %s", async (_, method, answer) => {
    let isFaulty = true;
    const { devnet, paid, failOther, look, pass } = await hide(async (call, ask) => {
      const { address } = filterSchema.safeParse(call.params[0]).data ?? {};
      return isFaulty && call.method === method && address !== otherToken ? answer : ask();
    });
    await failOther();
    await submitAsStranger({ devnet }, paid);
    await devnet.mine(20);
    for (let count = 0; count < 3; count += 1) {
      expect(await look()).toBe("watched");
      pass(140_000);
    }
    isFaulty = false;
    expect(await look()).toBe("confirmed");
  });

  it("is not closed by a cancellation that the first endpoint makes up", async () => {
    const makeUp: Intercept = async (call, ask) => {
      if (call.method !== "eth_getLogs") return hiding(call, ask);
      const { topics, toBlock } = filterSchema.parse(call.params[0]);
      const [[, cancelled], ...others] = topics;
      const place = { blockNumber: toBlock, transactionHash: `0x${"0c".repeat(32)}` };
      return { result: [{ ...place, topics: [cancelled, ...others.flat()] }] };
    };
    const options = { liar: makeUp, validBefore: 2n ** 40n };
    const { devnet, paid, look } = await hide((_, ask) => ask(), options);
    expect(await look()).toBe("watched");
    await submitAsStranger({ devnet }, paid);
    expect(await look()).toBe("confirmed");
  });
});

it("searches each token from its own start, where the logs of another stay unreadable", async () => {
  const devnet = await startDevnet();
  onTestFinished(() => devnet.stop());
  const { network, chainId } = devnet;
  const unreadable = `0x${"0a".repeat(20)}` as const;
  const starts: number[] = [];
  const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [filter] }, ask) => {
    if (method !== "eth_getLogs") return ask();
    const { address, fromBlock } = filterSchema.parse(filter);
    if (address === unreadable) return { error: { code: -32005, message: "too many logs" } };
    starts.push(fromBlock);
    return ask();
  });
  onTestFinished(() => proxy.close());
  const { ledger, look } = await begin({ rpcUrls: [proxy.url], chainId, network });
  for (const asset of [unreadable, otherToken]) await failQueued(ledger, { network, asset });

  await devnet.mine(20);
  const first = await devnet.client.getBlockNumber();
  await look(first);
  await devnet.mine(3);
  await look(await devnet.client.getBlockNumber());
  // Eight blocks more: their logs may have been late.
  expect(starts).toEqual([1, Number(first) - 7]);
});
