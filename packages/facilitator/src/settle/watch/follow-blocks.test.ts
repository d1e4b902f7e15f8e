import { createRpcPool, systemClock } from "@coinslot/chain";
import { startDevnet } from "@coinslot/devnet";
import { expect, it, onTestFinished } from "vitest";
import { recordOutcomes } from "../../ledger/payments/record-outcomes.ts";
import { findBlocks } from "../../ledger/transactions/undo-blocks.ts";
import { silentLogger } from "../../logger.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { authorization, inclusion, queue, stateOf } from "../../testing/ledger-payments.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { createMetrics } from "../metrics.ts";
import { followBlocks } from "./follow-blocks.ts";

const { join } = ledgerForEachTest("sqlite");
const disputeMs = 120_000;

/** A payment in a block far above the chain of the second of two nodes, and looks at it. */
async function begin() {
  const devnet = await startDevnet();
  onTestFinished(() => devnet.stop());
  const { network, chainId, client, rpcUrl } = devnet;
  let isSilent = true;
  const first = await startNodeProxy(rpcUrl, async ({ method, params: [block] }, ask) =>
    isSilent && method === "eth_getBlockByNumber" && block === "latest"
      ? { error: { code: -32000, message: "header not found" } }
      : ask(),
  );
  onTestFinished(() => first.close());
  const rpc = createRpcPool({ chainId, rpcUrls: [first.url, rpcUrl], patienceMs: 0, restMs: 1 });
  onTestFinished(() => rpc.close());
  const ledger = await join("one");
  const id = await queue(ledger, { id: authorization({ network }) });
  const far = { ...inclusion, blockNumber: 1_000_000_000 };
  await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion: far } }]);
  let nowMs = 0;
  const watch: Parameters<typeof followBlocks>[0] = {
    context: {
      ledger,
      metrics: createMetrics(),
      logger: silentLogger,
      emit: () => undefined,
      clock: { ...systemClock, now: () => nowMs },
      now: Date.now,
      times: { disputeMs },
    },
    network: { network, rpc, finalAfter: 3 },
    canonical: new Set(),
    farSince: new Map(),
    onReorg: () => undefined,
  };
  /** The state of the payment after a look. */
  async function look() {
    const known = await findBlocks(ledger, network);
    await followBlocks(watch, known, await client.getBlockNumber());
    return stateOf(ledger, id);
  }
  return {
    look,
    pass(ms: number) {
      nowMs += ms;
    },
    answer() {
      isSilent = false;
    },
  };
}

it("a payment far above one node's chain is not taken back while another returns no head", async () => {
  const { look, pass, answer } = await begin();
  for (let count = 0; count < 4; count += 1) {
    expect(await look()).toBe("confirmed");
    pass(disputeMs);
  }
  answer();
  expect(await look()).toBe("queued");
});

it("a payment far above one node's chain is taken back after ten minutes without the other's head", async () => {
  const { look, pass } = await begin();
  let looks = 0;
  for (; (await look()) === "confirmed"; looks += 1) pass(disputeMs);
  expect(looks * disputeMs).toBeGreaterThan(600_000);
});
