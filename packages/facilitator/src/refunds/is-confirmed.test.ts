import { createRpcPool, RpcEndpointError, RpcUnavailableError, systemClock } from "@coinslot/chain";
import { zeroHash } from "viem";
import { expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../logger.ts";
import { startNodeProxy } from "../testing/node-proxy.ts";
import { askEach, type Question } from "./is-confirmed.ts";

const minutes = 60_000;
const chainId = 31_337;

/** Two nodes that confirm everything. The second one does not answer some methods, or by errors. */
async function startTwo() {
  const mute = new Set<string>();
  const faulty = new Set<string>();
  let passedMs = 0;
  let isOut = false;
  let timestamp = Math.floor(Date.now() / 1_000);
  let second = { chainId };
  const nodes = await Promise.all(
    [false, true].map((isSecond) =>
      startNodeProxy("http://127.0.0.1:1", async ({ method }) => {
        if (isOut || (isSecond && mute.has(method))) return undefined;
        if (isSecond && faulty.has(method)) {
          return { error: { code: -32_000, message: "header not found" } };
        }
        if (method === "eth_chainId") {
          return { result: `0x${(isSecond ? second.chainId : chainId).toString(16)}` };
        }
        if (method !== "eth_getBlockByNumber") return { result: "0x" };
        const time = isSecond ? timestamp : Math.floor(Date.now() / 1_000);
        const block = { number: "0x1", hash: zeroHash, parentHash: zeroHash };
        return { result: { ...block, timestamp: `0x${time.toString(16)}` } };
      }),
    ),
  );
  const rpc = createRpcPool({
    chainId,
    rpcUrls: nodes.map(({ url }) => url),
    patienceMs: 0,
    failureThreshold: 1_000,
    clock: { ...systemClock, now: () => systemClock.now() + passedMs },
  });
  onTestFinished(async () => {
    await rpc.close();
    for (const node of nodes) await node.close();
  });
  const warnings: unknown[] = [];
  const electorate = {
    network: { network: "eip155:31337", rpc },
    context: {
      clock: { ...systemClock, now: () => passedMs },
      logger: { ...silentLogger, warn: (fields: object) => void warnings.push(fields) },
      ledger: { now: Date.now },
    },
  } as const;
  /** A question whose answer needs one call. */
  const ask = (kind: Question["kind"], { method = "eth_call", of = "rf_1" } = {}) =>
    askEach(electorate, { kind, of }, async (endpoint) => {
      await endpoint.request({ method, params: [] });
      return true;
    });
  const pass = (ms: number) => {
    passedMs += ms;
  };
  return {
    mute,
    faulty,
    warnings,
    ask,
    pass,
    /** Asks each two minutes of ten. */
    async askForTenMinutes(...question: Parameters<typeof ask>) {
      for (let looks = 0; looks < 5; looks++) {
        expect(await ask(...question)).toBe("undecided");
        pass(2 * minutes);
      }
    },
    /** A question about a block which the second one alone has not come to. */
    askAbove: () =>
      askEach(electorate, { kind: "use", of: "rf_1" }, async ({ endpoint }) =>
        endpoint === 2 ? "behind" : true,
      ),
    /** A question to the second one that this process's own limits hold back. */
    askBusy: () =>
      askEach(electorate, { kind: "use", of: "rf_1" }, async ({ endpoint }) => {
        if (endpoint === 1) return true;
        const name = { number: endpoint, label: "endpoint 2 of 2" };
        const busy = { name, kind: "busy", details: "no room", maybeSent: false } as const;
        const failures = [new RpcEndpointError(busy)];
        throw new RpcUnavailableError({ chainId, subject: "it", failures, retryAfterMs: 0 });
      }),
    /** No node answers. */
    setOut: (is: boolean) => {
      isOut = is;
    },
    setTime: (time: number) => {
      timestamp = time;
    },
    serve: (other: number) => {
      second = { chainId: other };
    },
  };
}

it.each([
  ["answers nothing", "mute", "eth_getBlockByNumber"],
  ["answers no question", "mute", "eth_call"],
  ["has an error for its head", "faulty", "eth_getBlockByNumber"],
  ["has an error for each question", "faulty", "eth_call"],
] as const)("an endpoint that %s holds up a vote for ten minutes", async (_, by, method) => {
  const { ask, pass, warnings, ...scene } = await startTwo();
  scene[by].add(method);
  expect(await ask("use")).toBe("undecided");
  expect(warnings).toEqual([]);
  for (let looks = 0; looks < 4; looks++) {
    pass(2 * minutes);
    expect(await ask("use")).toBe("undecided");
  }
  expect(warnings).toEqual([expect.objectContaining({ endpoint: 2 })]);
  pass(2 * minutes);
  expect(await ask("use")).toBe("confirmed");
  scene[by].clear();
  expect(await ask("use")).toBe("confirmed");
  scene[by].add(method);
  expect(await ask("use")).toBe("undecided");
});

it.each([0, 1, 5])("an outage of all nodes takes no say, with %i looks", async (looks) => {
  const { ask, mute, pass, setOut } = await startTwo();
  // It fails first.
  mute.add("eth_getBlockByNumber");
  expect(await ask("use")).toBe("undecided");
  setOut(true);
  for (let look = 0; look < looks; look++) {
    pass((10 * minutes) / looks);
    expect(await ask("use")).toBe("undecided");
  }
  if (looks === 0) pass(20 * minutes);
  setOut(false);
  // It rests for a moment.
  for (let look = 0; look < 10; look++) {
    expect(await ask("use")).toBe("undecided");
    pass(3_000);
  }
  mute.clear();
  expect(await ask("use")).toBe("confirmed");
});

it("requests that were never sent take no say", async () => {
  const { askBusy, pass } = await startTwo();
  for (let looks = 0; looks < 8; looks++) {
    expect(await askBusy()).toBe("undecided");
    pass(2 * minutes);
  }
});

it("two faults of an endpoint that are hours apart are not ten minutes of silence", async () => {
  const { ask, mute, pass } = await startTwo();
  mute.add("eth_getBlockByNumber");
  for (let looks = 0; looks < 5; looks++) {
    expect(await ask("use")).toBe("undecided");
    pass(31 * minutes);
  }
  for (let looks = 0; looks < 4; looks++) {
    pass(29 * minutes);
    expect(await ask("use")).toBe("undecided");
  }
});

it("an endpoint without a say holds up no later vote of the day", async () => {
  const { ask, askForTenMinutes, mute, pass } = await startTwo();
  mute.add("eth_getBlockByNumber");
  await askForTenMinutes("use");
  expect(await ask("use")).toBe("confirmed");
  pass(1_439 * minutes);
  expect(await ask("payment")).toBe("confirmed");
  pass(1_440 * minutes);
  expect(await ask("use")).toBe("undecided");
});

it("an endpoint that answers one kind of question has no say in another after ten minutes", async () => {
  const { ask, askForTenMinutes, mute } = await startTwo();
  mute.add("eth_getLogs");
  await askForTenMinutes("payment", { method: "eth_getLogs" });
  expect(await ask("no use")).toBe("confirmed");
  expect(await ask("payment", { method: "eth_getLogs", of: "rf_2" })).toBe("confirmed");
  mute.add("eth_call");
  expect(await ask("no use")).toBe("undecided");
});

it("an endpoint without old data has no say about it after ten minutes, beside new data", async () => {
  const { ask, faulty, pass } = await startTwo();
  for (let looks = 0; looks < 4; looks++) {
    faulty.add("eth_getLogs");
    expect(await ask("payment", { method: "eth_getLogs", of: "old" })).toBe("undecided");
    faulty.clear();
    expect(await ask("payment", { method: "eth_getLogs", of: "new" })).toBe("confirmed");
    pass(3 * minutes);
  }
  faulty.add("eth_getLogs");
  expect(await ask("payment", { method: "eth_getLogs", of: "old" })).toBe("confirmed");
  expect(await ask("payment", { method: "eth_getLogs", of: "newer" })).toBe("undecided");
});

it("an endpoint of another chain has no say after ten minutes", async () => {
  const { ask, askForTenMinutes, serve, warnings } = await startTwo();
  serve(1);
  await askForTenMinutes("use");
  expect(await ask("use")).toBe("confirmed");
  expect(warnings.at(-1)).toMatchObject({ endpoint: 2 });
});

it("an endpoint that was of another chain once is awaited", async () => {
  const { ask, pass, serve } = await startTwo();
  serve(1);
  expect(await ask("use")).toBe("undecided");
  serve(chainId);
  expect(await ask("use")).toBe("undecided");
  pass(15_000);
  expect(await ask("use")).toBe("confirmed");
});

it("an endpoint behind holds up a vote until its head is older than ten minutes", async () => {
  const { askAbove, setTime } = await startTwo();
  setTime(Math.floor(Date.now() / 1_000) - 500);
  expect(await askAbove()).toBe("undecided");
  setTime(Math.floor(Date.now() / 1_000) - 700);
  expect(await askAbove()).toBe("confirmed");
});
