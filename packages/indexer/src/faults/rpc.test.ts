import { setTimeout as pause } from "node:timers/promises";
import { transferBatch } from "@coinslot/devnet";
import { effort } from "@coinslot/devnet/effort";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../logger.ts";
import { enginesByDay } from "../testing/engines.ts";
import {
  type Call,
  changing,
  errorAnswer,
  type Fault,
  honest,
  logsOf,
  rangeOf,
  startFaultProxy,
} from "../testing/fault-proxy.ts";
import { expectExact } from "../testing/oracle.ts";
import {
  startChain,
  startFastIndexer,
  startIndexer,
  startUsedChain,
  stepRandomly,
  usdtOf,
} from "../testing/scene.ts";
import { type Random, randomOf } from "../testing/seeded-random.ts";
import { transferTopic } from "../transfer-log/transfer-topic.ts";

/** Providers' errors for a range that is too wide. `limit` is the number of blocks they accept. */
const rangeErrors: Record<
  string,
  (limit: number, range: { from: number; to: number }) => [number, string]
> = {
  "block range too large": () => [-32000, "block range too large"],
  "a limit in words": (limit) => [-32602, `eth_getLogs is limited to a ${limit} block range`],
  "a limit with a comma": (limit) => [
    -32000,
    `exceed maximum block range: ${limit.toLocaleString("en")}`,
  ],
  "more than 10000 results": () => [-32005, "query returned more than 10000 results"],
  "a suggested range": (limit, { from }) => [
    -32005,
    `query returned more than 10000 results. Try with this block range [0x${from.toString(16)}, 0x${(from + limit - 1).toString(16)}].`,
  ],
  "the refused range as the suggestion": (_, { from, to }) => [
    -32005,
    `Try with this block range [0x${from.toString(16)}, 0x${to.toString(16)}].`,
  ],
  "a suggestion of nothing": (_, { from }) => [
    -32602,
    `Try with this block range [0x${from.toString(16)}, 0x${(from - 5).toString(16)}].`,
  ],
  "query timeout exceeded": () => [-32000, "query timeout exceeded"],
  "limit exceeded": () => [-32005, "limit exceeded"],
  "an unknown text": () => [-32603, "Lorem ipsum dolor sit amet"],
};

/** Malformed answers. */
const badAnswers: Record<string, Fault> = {
  "429": ({ response }) => void response.writeHead(429).end(),
  "429 with Retry-After": ({ response }) =>
    void response.writeHead(429, { "retry-after": "0.05" }).end(),
  "500": ({ response }) => void response.writeHead(500).end("oops"),
  "503": ({ response }) => void response.writeHead(503).end(),
  "no answer in time": () => undefined,
  reset: ({ response }) => void response.destroy(),
  "truncated JSON": ({ response }) => void response.end('[{"jsonrpc":"2.0","id":1,"resu'),
  "HTML with status 200": ({ response }) => void response.end("<html>Welcome</html>"),
  "an error inside a 200": ({ calls, reply }) =>
    reply(calls.map((call) => errorAnswer(call, -32603, "internal error"))),
  "a wrong id": async ({ forward, reply }) =>
    reply((await forward()).map((answer) => ({ ...answer, id: answer.id + 7 }))),
};

describe.each(enginesByDay)("through RPC faults, on $engine,", ({ engine, createUrl }) => {
  it("a load-balanced endpoint that misses the newest blocks hides no transfer", async () => {
    const random = randomOf(`load-balanced on ${engine}`);
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    // Half of its nodes do not have the last few blocks, and have no logs for them.
    proxy.set(async (exchange) => {
      const answers = await exchange.forward();
      if (random.chance(0.5)) return exchange.reply(answers);
      const head = Number(await devnet.client.getBlockNumber()) - random.between(1, 4);
      exchange.reply(
        answers.map((answer, index) => {
          const call = exchange.calls[index];
          if (call?.method === "eth_getLogs") {
            return {
              ...answer,
              result: logsOf(answer).filter((log) => Number(log.blockNumber) <= head),
            };
          }
          const asked = Number(call?.params[0]);
          const isAbove =
            (call?.method === "eth_getBlockByNumber" && asked > head) ||
            (call?.method === "eth_getBlockByHash" && numberOf(answer) > head);
          return isAbove ? { ...answer, result: null } : answer;
        }),
      );
    });
    const indexer = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    for (let step = 0; step < 15 * effort; step++) {
      await stepRandomly(devnet, random);
      await pause(random.between(0, 40));
    }
    proxy.set(honest);
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it.each([
    ["after some blocks", cutAfterBlocks(7)],
    ["after some logs", cutAfterLogs(5)],
  ])("an endpoint that silently truncates ranges %s hides no transfer", async (_, fault) => {
    const devnet = await startUsedChain(60);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    proxy.set(fault);
    const indexer = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it.each(Object.entries(rangeErrors))(
    "history converges when ranges are refused with: %s",
    async (_, explain) => {
      const random = randomOf(`refused ranges on ${engine}`);
      const devnet = await startUsedChain(60);
      const proxy = await startFaultProxy(devnet.rpcUrl);
      const limit = random.between(1, 6);
      proxy.set(
        changing("eth_getLogs", (answer, call) => {
          const range = rangeOf(call);
          if (range === undefined || range.to - range.from < limit) return answer;
          return errorAnswer(answer, ...explain(limit, range));
        }),
      );
      const indexer = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
      await expectExact(indexer, devnet, usdtOf(devnet));
      const asked = proxy.requests.flat().filter(({ method }) => method === "eth_getLogs").length;
      expect(asked).toBeLessThan(400);
    },
  );

  it("an endpoint that refuses logs of all addresses still serves ranges by address", async () => {
    const devnet = await startChain();
    // No logs of the token, and logs of another in the last block of the first range.
    const other = await devnet.deployToken({ symbol: "OTHER" });
    const to = devnet.accounts.seller.address;
    for (let block = 0; block < 30; block++) await devnet.mint({ to, amount: 1n, token: other });
    await devnet.mine(200);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    proxy.set(
      changing("eth_getLogs", (answer, call) =>
        JSON.stringify(call.params).includes("address")
          ? answer
          : errorAnswer(answer, -32701, "Please specify an address in your request"),
      ),
    );
    const indexer = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const asked = proxy.requests.flat().filter((call) => rangeOf(call) !== undefined).length;
    expect(asked).toBeLessThan(60);
  });

  it("a block with more logs than the endpoint returns is read in another way", async () => {
    const devnet = await startUsedChain();
    const { client } = devnet;
    const batch = await devnet.deployTransferBatch();
    const run = () =>
      client.writeContract({
        address: batch,
        abi: transferBatch.abi,
        functionName: "run",
        args: [devnet.token, 30n, "0x1000000000000000000000000000000000000000", 3n],
      });
    await run();
    await devnet.mine(15);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    proxy.set(
      changing("eth_getLogs", (answer) =>
        logsOf(answer).length > 20 ? errorAnswer(answer, -32005, "more than 20 results") : answer,
      ),
    );
    const indexer = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectExact(indexer, devnet, usdtOf(devnet));
    await run();
    await expectExact(indexer, devnet, usdtOf(devnet));
    // An endpoint that truncates silently, and one without eth_getBlockReceipts.
    proxy.set(async (exchange) => {
      const answers = await exchange.forward();
      exchange.reply(
        answers.map((answer, index) =>
          exchange.calls[index]?.method === "eth_getBlockReceipts"
            ? errorAnswer(answer, -32601, "method not found")
            : exchange.calls[index]?.method === "eth_getLogs"
              ? { ...answer, result: logsOf(answer).slice(0, 20) }
              : answer,
        ),
      );
    });
    const second = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await devnet.mine(15);
    await expectExact(second, devnet, usdtOf(devnet));
  });

  it("malformed answers are survived", async () => {
    const random = randomOf(`bad answers on ${engine}`);
    const devnet = await startUsedChain(40);
    const proxies = [await startFaultProxy(devnet.rpcUrl), await startFaultProxy(devnet.rpcUrl)];
    for (const proxy of proxies) proxy.set(sometimes(random, 0.25, badAnswers));
    const indexer = await startIndexer({
      rpcUrls: proxies.map(({ url }) => url),
      database: await createUrl(),
      chain: { requestTimeoutMs: 500 },
    });
    for (let step = 0; step < 15 * effort; step++) await stepRandomly(devnet, random);
    await expectExact(indexer, devnet, usdtOf(devnet), { nodesFail: true });
  });

  it("live blocks with full bloom filters do not delay an inactive token", async () => {
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    proxy.set(withFullBlooms);
    const indexer = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("a node that has the block before its logs hides no transfer", async () => {
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectExact(indexer, devnet, usdtOf(devnet));
    const noLogsYet = changing("eth_getLogs", (answer) => ({ ...answer, result: [] }));
    let asked = 0;
    proxy.set(async (exchange) => {
      if (exchange.calls.some(isLogsOfBlock)) asked += 1;
      return asked < 12 ? noLogsYet(exchange) : honest(exchange);
    });
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 1n });
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("transfers in another event format do not stop a chain with a slow endpoint", async () => {
    const devnet = await startUsedChain();
    const proxy = await startFaultProxy(devnet.rpcUrl);
    const indexer = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    await expectExact(indexer, devnet, usdtOf(devnet));
    // A distinct number of transfers in each block.
    const odd = changing("eth_getLogs", (answer) => {
      const [log] = logsOf(answer);
      if (log === undefined) return answer;
      const oddLog = { ...log, topics: [transferTopic] };
      const count = Number(log.blockNumber) % 8;
      return { ...answer, result: [...logsOf(answer), ...Array(count).fill(oddLog)] };
    });
    proxy.set(async (exchange) => {
      if (exchange.calls.some(isLogsOfBlock)) await pause(700);
      return odd(exchange);
    });
    const { seller } = devnet.accounts;
    for (let amount = 1n; amount <= 8n; amount++) await devnet.mint({ to: seller.address, amount });
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("the next endpoint takes over when the first fails in the middle of a range, and the first is used again", async () => {
    const devnet = await startUsedChain(60);
    const first = await startFaultProxy(devnet.rpcUrl);
    const second = await startFaultProxy(devnet.rpcUrl);
    let ranges = 0;
    first.set(async (exchange) => {
      const isRange = exchange.calls.some((call) => rangeOf(call) !== undefined);
      if (isRange && ++ranges === 2) {
        exchange.response.write('[{"jsonrpc":"2.0","id":1,"result":[');
        first.cut();
        return;
      }
      await honest(exchange);
    });
    const indexer = await startFastIndexer({
      rpcUrls: [first.url, second.url],
      database: await createUrl(),
      chain: { maxBlocksPerRequest: 10 },
    });
    await expectExact(indexer, devnet, usdtOf(devnet));
    expect(second.requests.length).toBeGreaterThan(0);
    first.mend();
    const before = first.requests.length;
    await expect.poll(() => first.requests.length, { timeout: 20_000 }).toBeGreaterThan(before + 5);
    await devnet.mint({ to: devnet.accounts.seller.address, amount: 1n });
    await expectExact(indexer, devnet, usdtOf(devnet));
  });

  it("the indexer refuses to start on a wrong chain id", async () => {
    const devnet = await startUsedChain();
    const database = await createUrl();
    await expect(
      startIndexer({ rpcUrls: [devnet.rpcUrl], database, chain: { chainId: 988 } }),
    ).rejects.toThrow("serves chain 9745 instead of chain 988");
  });

  it.each([1, 2])(
    "a start goes on beside %d endpoints of another chain, which are shown and asked again",
    async (count) => {
      const devnet = await startUsedChain();
      const proxies = await Promise.all(
        Array.from({ length: count }, () => startFaultProxy(devnet.rpcUrl)),
      );
      for (const proxy of proxies)
        proxy.set(changing("eth_chainId", (answer) => ({ ...answer, result: "0x1" })));
      const errors: { fields: object; message: string }[] = [];
      const indexer = await startFastIndexer({
        rpcUrls: [...proxies.map(({ url }) => url), devnet.rpcUrl],
        database: await createUrl(),
        logger: {
          ...silentLogger,
          error: (fields, message) => void errors.push({ fields, message }),
        },
      });
      await expectExact(indexer, devnet, usdtOf(devnet));
      expect(errors).toContainEqual({
        fields: { chain: "devnet", endpoint: 1, found: 1, expected: devnet.chainId },
        message: "An endpoint serves another chain, and is not used",
      });
      const problem = `Endpoint${count === 1 ? " 1" : "s 1, 2"} of another chain: not used`;
      const shown = { health: "degraded", problem, tokens: [{ health: "healthy" }] };
      await expect
        .poll(() => indexer.status(), { timeout: 20_000 })
        .toMatchObject({ health: "degraded", chains: [shown] });
      for (const proxy of proxies) proxy.set(honest);
      await expect
        .poll(() => indexer.status(), { timeout: 30_000 })
        .toMatchObject({ health: "healthy", chains: [{ problem: undefined }] });
    },
  );

  it("corrupt logs are not stored", async () => {
    const random = randomOf(`corrupt logs on ${engine}`);
    let corrupted = 0;
    const devnet = await startUsedChain(40);
    const proxy = await startFaultProxy(devnet.rpcUrl);
    proxy.set(
      changing("eth_getLogs", (answer) => {
        const logs = logsOf(answer);
        const victim = logs[random.between(0, Math.max(0, logs.length - 1))];
        if (victim === undefined || random.chance(0.6)) return answer;
        const rest = logs.filter((log) => log !== victim);
        corrupted += 1;
        return { ...answer, result: [...rest, ...random.pick(corruptions)(victim)] };
      }),
    );
    const indexer = await startIndexer({ rpcUrls: [proxy.url], database: await createUrl() });
    // The chain has to grow: a finished history asks for no more logs.
    for (let step = 0; step < 15 * effort || corrupted < 6; step++) {
      await stepRandomly(devnet, random);
    }
    // The rows stored meanwhile are right, or they would still be wrong now.
    proxy.set(honest);
    await expectExact(indexer, devnet, usdtOf(devnet));
  });
});

/** True for a request for one block's logs by hash, as live reads them. */
function isLogsOfBlock(call: Call): boolean {
  return call.method === "eth_getLogs" && rangeOf(call) === undefined;
}

/** Bloom filters with every bit set, which rule out no log, as on a busy chain. */
const withFullBlooms: Fault = async ({ forward, reply }) => {
  const logsBloom = `0x${"f".repeat(512)}`;
  const answers = await forward();
  reply(
    answers.map((answer) =>
      typeof answer.result === "object" && answer.result !== null && "logsBloom" in answer.result
        ? { ...answer, result: { ...answer.result, logsBloom } }
        : answer,
    ),
  );
};

function numberOf({ result }: { result?: unknown }): number {
  const isBlock = typeof result === "object" && result !== null && "number" in result;
  return isBlock ? Number(result.number) : 0;
}

type Log = Record<string, unknown>;

const corruptions: readonly [(log: Log) => Log[], ...((log: Log) => Log[])[]] = [
  (log) => [{ ...log, address: "0x00000000000000000000000000000000000000aa" }],
  (log) => [{ ...log, topics: Array.isArray(log.topics) ? log.topics.slice(0, 2) : [] }],
  (log) => [{ ...log, topics: Array.isArray(log.topics) ? [...log.topics, log.topics[1]] : [] }],
  (log) => [{ ...log, data: "0x01" }],
  (log) => [log, log],
  (log) => [{ ...log, removed: true }],
  (log) => [{ ...log, blockNumber: null }],
];

/** A provider that serves the first blocks of a range, and silently omits the rest. */
function cutAfterBlocks(blocks: number): Fault {
  return changing("eth_getLogs", (answer, call) => {
    const { from } = rangeOf(call) ?? { from: Number.POSITIVE_INFINITY };
    return {
      ...answer,
      result: logsOf(answer).filter((log) => Number(log.blockNumber) < from + blocks),
    };
  });
}

function cutAfterLogs(count: number): Fault {
  return changing("eth_getLogs", (answer, call) =>
    rangeOf(call) ? { ...answer, result: logsOf(answer).slice(0, count) } : answer,
  );
}

function sometimes(random: Random, share: number, faults: Record<string, Fault>): Fault {
  const [first, ...others] = Object.values(faults);
  if (first === undefined) return honest;
  return (exchange) =>
    random.chance(share) ? random.pick([first, ...others])(exchange) : honest(exchange);
}
