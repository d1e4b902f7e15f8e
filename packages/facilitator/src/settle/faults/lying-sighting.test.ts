import { withDatabase } from "@coinslot/devnet";
import { expect, it, onTestFinished, vi } from "vitest";
import { settle } from "../../testing/settling-actions.ts";
import { type SettlingDevnet, startSettlingDevnet } from "../../testing/settling-devnet.ts";

async function begin(): Promise<SettlingDevnet> {
  const here = await startSettlingDevnet("postgres");
  onTestFinished(() => here.stop());
  return here;
}

/** Sends a head far above the chain's, as a process whose only node lies. */
async function sendFalseHead({ devnet, ledger }: SettlingDevnet): Promise<void> {
  const head = {
    number: "0xfffffff",
    hash: `0x${"ab".repeat(32)}`,
    parentHash: `0x${"cd".repeat(32)}`,
    timestamp: "0x1",
    baseFeePerGas: "0x1",
  };
  const payload = JSON.stringify({ network: devnet.network, head });
  await withDatabase(ledger.url, async ({ execute }) => {
    await execute(`select pg_notify('coinslot_chain', '${payload}')`);
  });
}

it("a false head of another process serves no payment before its depth", async () => {
  const here = await begin();
  const { devnet, start, pay } = here;
  const facilitator = await start({ network: { serveAfter: 2 } });
  let isServed = false;
  const settled = settle(facilitator, await pay()).then((answer) => {
    isServed = true;
    return answer;
  });
  const { seller } = devnet.accounts;
  await vi.waitFor(async () => expect(await here.balanceOf(seller.address)).toBe(1_000n), 20_000);
  const receiptsBefore = await lookedForDepth();
  await sendFalseHead(here);
  await vi.waitFor(async () => {
    expect(isServed || (await lookedForDepth()) > receiptsBefore + 2).toBe(true);
  }, 20_000);
  expect(isServed).toBe(false);
  await devnet.mine(2);
  expect(await settled).toMatchObject({ success: true });

  /** Reads of receipts so far. */
  async function lookedForDepth(): Promise<number> {
    const counter = facilitator.metrics.getSingleMetric("coinslot_node_calls_total");
    const { values } = (await counter?.get()) ?? { values: [] };
    const receipts = values.find(({ labels }) => labels.method === "eth_getTransactionReceipt");
    return receipts?.value ?? 0;
  }
});

it("a false head of another process makes no payment final before its depth", async () => {
  const here = await begin();
  const { devnet, start, pay } = here;
  const facilitator = await start({
    network: { finalAfter: 5 },
    times: { sweepMs: 50, idleMs: 500 },
  });
  await sendFalseHead(here);
  expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
  await sendFalseHead(here);
  const seen = await followed();
  await vi.waitFor(async () => {
    expect((await isFinal()) || (await followed()) > seen + 2).toBe(true);
  }, 20_000);
  expect(await isFinal()).toBe(false);
  await devnet.mine(6);
  await vi.waitFor(async () => expect(await isFinal()).toBe(true), 20_000);

  async function isFinal(): Promise<boolean> {
    return (await facilitator.payments.list()).payments[0]?.finalAt !== undefined;
  }

  /** Looks at the chain so far. */
  async function followed(): Promise<number> {
    const counter = facilitator.metrics.getSingleMetric("coinslot_node_calls_total");
    const { values } = (await counter?.get()) ?? { values: [] };
    const blocks = values.find(({ labels }) => labels.method === "eth_getBlockByNumber");
    return blocks?.value ?? 0;
  }
});
