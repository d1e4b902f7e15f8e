import { createRpcPool, systemClock } from "@coinslot/chain";
import { startDevnet } from "@coinslot/devnet";
import { expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { recordOutcomes } from "../../ledger/payments/record-outcomes.ts";
import { silentLogger } from "../../logger.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { authorization, queue } from "../../testing/ledger-payments.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { createMetrics } from "../metrics.ts";
import { createOutcomeNotifier } from "../outcome-notifier.ts";
import { watchFailed } from "./watch-failed.ts";

const { join } = ledgerForEachTest("sqlite");
const filterSchema = z.object({ address: z.string(), fromBlock: z.string().transform(Number) });

it("searches each token from its own start, where the logs of another stay unreadable", async () => {
  const devnet = await startDevnet();
  onTestFinished(() => devnet.stop());
  const { network, chainId } = devnet;
  const unreadable = `0x${"0a".repeat(20)}` as const;
  const readable = `0x${"0b".repeat(20)}` as const;
  const starts: number[] = [];
  const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [filter] }, ask) => {
    if (method !== "eth_getLogs") return ask();
    const { address, fromBlock } = filterSchema.parse(filter);
    if (address === unreadable) return { error: { code: -32005, message: "too many logs" } };
    starts.push(fromBlock);
    return ask();
  });
  onTestFinished(() => proxy.close());
  const rpc = createRpcPool({ chainId, rpcUrls: [proxy.url] });
  onTestFinished(() => rpc.close());
  const ledger = await join("one");
  for (const asset of [unreadable, readable]) {
    const id = await queue(ledger, { id: authorization({ network, asset }) });
    const reason = "invalid_exact_evm_transaction_failed";
    await recordOutcomes(ledger, [{ failed: [{ ids: [id], reason }] }]);
  }
  const notifier = await createOutcomeNotifier({
    clock: systemClock,
    logger: silentLogger,
    emit: () => undefined,
    ledger,
    metrics: createMetrics(),
    pollMs: 10_000,
  });
  onTestFinished(() => notifier.stop());
  const watch = {
    context: { ledger, notifier, clock: systemClock },
    network: { network, rpc, serveAfter: () => 0, finalAfter: 0 },
    searchedTo: new Map<string, bigint>(),
    resumeAfter: "",
    failedAt: undefined,
    finalBlock: undefined,
  };

  await devnet.mine(20);
  const first = await devnet.client.getBlockNumber();
  await watchFailed(watch, first);
  await devnet.mine(3);
  await watchFailed(watch, await devnet.client.getBlockNumber());
  // Eight blocks more: their logs may have been late.
  expect(starts).toEqual([1, Number(first) - 7]);
});
