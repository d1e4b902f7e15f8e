import { createRpcPool, systemClock } from "@coinslot/chain";
import { startDevnet } from "@coinslot/devnet";
import { type Network, toLowerHex } from "@coinslot/protocol";
import { expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { recordOutcomes } from "../../ledger/payments/record-outcomes.ts";
import { findFailed } from "../../ledger/queries/find-watched.ts";
import { silentLogger } from "../../logger.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { authorization, queue, stateOf } from "../../testing/ledger-payments.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { signPayment } from "../../testing/payments.ts";
import { idOf, submitAsStranger } from "../../testing/settling-actions.ts";
import { createLateLogs } from "../evidence/late-logs.ts";
import { createMetrics } from "../metrics.ts";
import { createOutcomeNotifier } from "../outcome-notifier.ts";
import { watchFailed } from "./watch-failed.ts";

const { join } = ledgerForEachTest("sqlite");
const filterSchema = z.object({ address: z.string(), fromBlock: z.string().transform(Number) });

/** The watch of a ledger's failed payments over a node. */
async function begin(options: { rpcUrl: string; chainId: number; network: Network }) {
  const { rpcUrl, chainId, network } = options;
  const rpc = createRpcPool({ chainId, rpcUrls: [rpcUrl] });
  onTestFinished(() => rpc.close());
  const ledger = await join("one");
  const parts = { clock: systemClock, logger: silentLogger, emit: () => undefined };
  const metrics = createMetrics();
  const notifier = await createOutcomeNotifier({ ...parts, ledger, metrics, pollMs: 10_000 });
  onTestFinished(() => notifier.stop());
  let nowMs = 0;
  const watch = {
    context: { ledger, notifier, clock: systemClock },
    network: { network, rpc, serveAfter: () => 0, finalAfter: 0 },
    searchedTo: new Map<string, bigint>(),
    resumeAfter: "",
    failedAt: undefined,
    finalBlock: undefined,
    closingLogs: createLateLogs({ now: () => nowMs }),
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { ledger, watch, pass };
}

it.each([
  ["is confirmed by them", true, "confirmed"],
  ["is closed after a while without them", false, "failed"],
] as const)(
  "a failed payment that is used in the last block of its time, with late logs, %s",
  async (_, come, state) => {
    const devnet = await startDevnet();
    onTestFinished(() => devnet.stop());
    const { network, token, accounts, client } = devnet;
    await devnet.mint({ to: accounts.buyer.address, amount: 1_000n });
    let isLate = true;
    const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) =>
      method === "eth_getLogs" && isLate ? { result: [] } : ask(),
    );
    onTestFinished(() => proxy.close());
    const { ledger, watch, pass } = await begin({ ...devnet, rpcUrl: proxy.url });
    const payTo = accounts.seller.address;
    const paid = await signPayment({ network, asset: token, signer: accounts.buyer, payTo });
    const { value, validAfter } = paid.authorization;
    const id = await queue(ledger, {
      id: idOf(paid),
      value,
      validBefore: 1_000n,
      balance: { amount: 1_000n, blockNumber: await client.getBlockNumber() },
      order: { payTo: toLowerHex(payTo), validAfter, signature: paid.signature },
    });
    const reason = "invalid_exact_evm_insufficient_balance";
    await recordOutcomes(ledger, [{ failed: [{ ids: [id], reason }] }]);
    await submitAsStranger({ devnet }, paid);
    // Later than the blocks that each search repeats.
    await devnet.mine(20);
    await watchFailed(watch, await client.getBlockNumber());
    expect(await findFailed(ledger, { network, limit: 10 })).toHaveLength(1);
    if (come) isLate = false;
    else pass(60_000);
    await devnet.mine();
    await watchFailed(watch, await client.getBlockNumber());
    expect(await stateOf(ledger, id)).toBe(state);
    expect(await findFailed(ledger, { network, limit: 10 })).toEqual([]);
  },
);

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
  const { ledger, watch } = await begin({ rpcUrl: proxy.url, chainId, network });
  for (const asset of [unreadable, readable]) {
    const id = await queue(ledger, { id: authorization({ network, asset }) });
    const reason = "invalid_exact_evm_transaction_failed";
    await recordOutcomes(ledger, [{ failed: [{ ids: [id], reason }] }]);
  }

  await devnet.mine(20);
  const first = await devnet.client.getBlockNumber();
  await watchFailed(watch, first);
  await devnet.mine(3);
  await watchFailed(watch, await devnet.client.getBlockNumber());
  // Eight blocks more: their logs may have been late.
  expect(starts).toEqual([1, Number(first) - 7]);
});
