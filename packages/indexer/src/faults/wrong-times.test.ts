import { toHex } from "viem";
import { expect, it } from "vitest";
import * as z from "zod";
import { engines } from "../testing/engines.ts";
import { type Answer, changing, logsOf, startFaultProxy } from "../testing/fault-proxy.ts";
import { finalDepth } from "../testing/final-depth.ts";
import { expectVerified } from "../testing/oracle.ts";
import { startFastIndexer, startUsedChain, usdtOf } from "../testing/scene.ts";

const blockSchema = z.looseObject({ timestamp: z.string() });
const [sqlite] = engines;

/** The logs of an answer without the times of their blocks, as many nodes return them. */
const withoutTimes = (answer: Answer) => ({
  ...answer,
  result: logsOf(answer).map(({ blockTimestamp, ...log }) => log),
});

it.each([
  ["first", true],
  ["second", false],
])("times that the %s endpoint has made up are mended where logs have none", async (_, isFirst) => {
  if (sqlite === undefined) throw new Error("No engine");
  const devnet = await startUsedChain(isFirst ? 30 : 2);
  const [first, second] = await Promise.all([
    startFaultProxy(devnet.rpcUrl),
    startFaultProxy(devnet.rpcUrl),
  ]);
  const [liar, other] = isFirst ? [first, second] : [second, first];
  liar.set(async ({ calls, forward, reply }) => {
    const answers = await forward();
    reply(
      answers.map((answer, index) => {
        const { method = "" } = calls[index] ?? {};
        if (method === "eth_getLogs") return withoutTimes(answer);
        const block = blockSchema.safeParse(answer.result).data;
        if (block === undefined || !method.startsWith("eth_getBlockBy")) return answer;
        const timestamp = toHex(BigInt(block.timestamp) + 5n);
        return { ...answer, result: { ...block, timestamp } };
      }),
    );
  });
  other.set(changing("eth_getLogs", withoutTimes));
  const indexer = await startFastIndexer({
    rpcUrls: [first.url, second.url],
    database: await sqlite.createUrl(),
    chain: { requestTimeoutMs: 12_000, verifyAfterMs: 50 },
  });
  await expectVerified(indexer, devnet, usdtOf(devnet), finalDepth);
  const { kysely } = await indexer.database();
  const rows = await kysely.selectFrom("indexer_blocks").selectAll().execute();
  for (const row of rows) {
    const { timestamp } = await devnet.client.getBlock({ blockNumber: BigInt(row.number) });
    expect(row.timestamp_ms).toBe(Number(timestamp) * 1_000);
  }
});
