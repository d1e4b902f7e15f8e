import { createRpcPool, systemClock } from "@coinslot/chain";
import { zeroHash } from "viem";
import { expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../logger.ts";
import { startNodeProxy } from "../testing/node-proxy.ts";
import { askEach, type Question } from "./is-confirmed.ts";

const minutes = 60_000;
const chainId = 31_337;

/** Two nodes that confirm everything. The second one leaves some methods without an answer. */
async function startTwo() {
  const mute = new Set<string>();
  let passedMs = 0;
  let timestamp = Math.floor(Date.now() / 1_000);
  let second = { chainId };
  const nodes = await Promise.all(
    [false, true].map((isSecond) =>
      startNodeProxy("http://127.0.0.1:1", async ({ method }) => {
        if (isSecond && mute.has(method)) return undefined;
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
  return {
    mute,
    warnings,
    /** A question whose answer needs one call. */
    ask: (question: Question, method = "eth_call") =>
      askEach(electorate, question, async (endpoint) => {
        await endpoint.request({ method, params: [] });
        return true;
      }),
    /** A question about a block which the second one alone has not come to. */
    askAbove: () =>
      askEach(electorate, "use", async ({ endpoint }) => (endpoint === 2 ? "behind" : true)),
    pass: (ms: number) => {
      passedMs += ms;
    },
    setTime: (time: number) => {
      timestamp = time;
    },
    serve: (other: number) => {
      second = { chainId: other };
    },
  };
}

it("an endpoint that answers nothing holds up a vote for ten minutes, and has no say then", async () => {
  const { ask, mute, pass, warnings } = await startTwo();
  mute.add("eth_getBlockByNumber");
  expect(await ask("use")).toBe("undecided");
  expect(warnings).toEqual([]);
  pass(10 * minutes - 1);
  expect(await ask("payment")).toBe("undecided");
  expect(warnings).toEqual([expect.objectContaining({ endpoint: 2 })]);
  pass(1);
  expect(await ask("use")).toBe("confirmed");
});

it("an endpoint that was silent in the last vote hours ago holds up none, and one that answered does", async () => {
  const { ask, mute, pass } = await startTwo();
  mute.add("eth_getBlockByNumber");
  expect(await ask("use")).toBe("undecided");
  pass(180 * minutes);
  expect(await ask("use")).toBe("confirmed");
  mute.clear();
  expect(await ask("use")).toBe("confirmed");
  mute.add("eth_getBlockByNumber");
  expect(await ask("use")).toBe("undecided");
  pass(1_440 * minutes);
  expect(await ask("use")).toBe("undecided");
});

it("an endpoint that answers one kind of question is left out of another after ten minutes", async () => {
  const { ask, mute, pass } = await startTwo();
  mute.add("eth_getLogs");
  expect(await ask("payment", "eth_getLogs")).toBe("undecided");
  pass(5 * minutes);
  expect(await ask("no use")).toBe("confirmed");
  expect(await ask("payment", "eth_getLogs")).toBe("undecided");
  pass(5 * minutes);
  expect(await ask("no use")).toBe("confirmed");
  expect(await ask("payment", "eth_getLogs")).toBe("confirmed");
  mute.add("eth_call");
  expect(await ask("no use")).toBe("undecided");
});

it("an endpoint of another chain has no say", async () => {
  const { ask, serve } = await startTwo();
  serve(1);
  expect(await ask("use")).toBe("confirmed");
});

it("an endpoint behind holds up a vote until its head is older than ten minutes", async () => {
  const { askAbove, setTime } = await startTwo();
  setTime(Math.floor(Date.now() / 1_000) - 500);
  expect(await askAbove()).toBe("undecided");
  setTime(Math.floor(Date.now() / 1_000) - 700);
  expect(await askAbove()).toBe("confirmed");
});
