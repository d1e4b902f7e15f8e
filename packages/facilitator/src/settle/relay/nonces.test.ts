import { withDatabase } from "@coinslot/devnet";
import { type Hex, type SettleResponse, toLowerHex } from "@coinslot/protocol";
import { parseGwei } from "viem";
import { toAccount } from "viem/accounts";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import { type NodeProxy, startNodeProxy } from "../../testing/node-proxy.ts";
import {
  type Engine,
  enginesByDay,
  type SettlingDevnet,
  startSettlingDevnet,
} from "../../testing/settling-devnet.ts";

type Paid = Awaited<ReturnType<SettlingDevnet["pay"]>>;

let settling: SettlingDevnet | undefined;
let proxy: NodeProxy | undefined;

async function begin(engine: Engine): Promise<SettlingDevnet> {
  settling = await startSettlingDevnet(engine);
  return settling;
}

afterEach(async () => {
  await settling?.stop();
  await proxy?.close();
  settling = undefined;
  proxy = undefined;
});

function settle(facilitator: CoinslotFacilitator, paid: Paid): Promise<SettleResponse> {
  return facilitator.settle(paid.paymentPayload, paid.paymentRequirements);
}

/** The number of the relayer's mined transactions. */
function countUsed({ devnet }: SettlingDevnet): Promise<number> {
  return devnet.client.getTransactionCount({ address: devnet.accounts.relayer.address });
}

/** Sends from the relayer's address, like another program with its key. */
function useKeyElsewhere({ devnet }: SettlingDevnet, options: { nonce?: number } = {}) {
  const { relayer } = devnet.accounts;
  return devnet.client.sendTransaction({
    account: relayer,
    to: relayer.address,
    maxFeePerGas: parseGwei("100"),
    maxPriorityFeePerGas: parseGwei("50"),
    ...options,
  });
}

async function pendingTransactions({ devnet }: SettlingDevnet): Promise<number> {
  return (await devnet.client.getTxpoolStatus()).pending;
}

/** The hash of the one transaction that waits for a block. */
async function findPending({ devnet }: SettlingDevnet): Promise<Hex> {
  const { pending } = await devnet.client.getTxpoolContent();
  const [hash] = Object.values(pending).flatMap((each) => Object.values(each).map((tx) => tx.hash));
  if (hash === undefined) throw new Error("No transaction waits");
  return hash;
}

describe.each(enginesByDay("sqlite"))("a relayer's nonce, on %s", (engine) => {
  it("is used even if the acknowledgement of its transaction's write was lost", async () => {
    const here = await begin(engine);
    const { devnet, start, pay, balanceOf } = here;
    let isLost = false;
    const facilitator = await start({
      faultPoint(name) {
        if (name !== "stored" || isLost) return;
        isLost = true;
        throw new Error("the connection broke after the commit");
      },
    });
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect(isLost).toBe(true);
    expect(await countUsed(here)).toBe(2);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(2_000n);
  });

  it("is given up when another program uses it first: the payment goes with the next nonce", async () => {
    const here = await begin(engine);
    const { devnet, start, pay, balanceOf } = here;
    const facilitator = await start({ times: { resendMs: 50, loseMs: 200, replaceMs: 60_000 } });
    await devnet.setAutomine(false);
    const settled = settle(facilitator, await pay());
    await vi.waitFor(async () => expect(await pendingTransactions(here)).toBe(1), 20_000);
    await useKeyElsewhere(here, { nonce: 0 });
    await devnet.mine();
    await devnet.setAutomine(true);
    expect(await settled).toMatchObject({ success: true });
    expect(await countUsed(here)).toBe(2);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
  });

  it("is read from the chain after another program used several, at the cost of one attempt", async () => {
    const here = await begin(engine);
    const { devnet, start, pay, balanceOf } = here;
    const facilitator = await start({ times: { resendMs: 50, loseMs: 500 } });
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    for (let count = 0; count < 4; count += 1) {
      await devnet.client.waitForTransactionReceipt({ hash: await useKeyElsewhere(here) });
    }
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    const transactions = await facilitator.metrics.getSingleMetricAsString(
      "coinslot_transactions_total",
    );
    expect(transactions).toMatch(/event="lost"} 1$/m);
    expect(await countUsed(here)).toBe(6);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(2_000n);
  });
});

describe("a relayer's nonce", () => {
  it("is given up at once when it was used before any node took its transaction", async () => {
    const here = await begin("sqlite");
    const { devnet, start, pay, balanceOf } = here;
    // Beyond the wait for the outcome.
    const facilitator = await start({ times: { loseMs: 600_000 } });
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    await devnet.client.waitForTransactionReceipt({ hash: await useKeyElsewhere(here) });
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect(await countUsed(here)).toBe(3);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(2_000n);
  });

  it("is followed no longer when the ledger has its transaction as lost", async () => {
    const here = await begin("sqlite");
    const { devnet, ledger, start, pay } = here;
    const facilitator = await start({
      times: { resendMs: 50, replaceMs: 100, loseMs: 600_000, sweepMs: 200 },
    });
    await devnet.setAutomine(false);
    const settled = settle(facilitator, await pay());
    await vi.waitFor(async () => expect(await pendingTransactions(here)).toBe(1), 20_000);
    // As a process of an older release gives it up, which does not look at the lease.
    await withDatabase(ledger.url, async ({ execute }) => {
      await execute("update payments set state = 'failed', reason = 'expired'");
      await execute("update transactions set state = 'lost'");
    });
    await vi.waitFor(async () => {
      const metric = "coinslot_transactions_in_flight";
      expect(await facilitator.metrics.getSingleMetricAsString(metric)).toMatch(/ 0$/m);
    }, 20_000);
    expect(await settled).toMatchObject({ success: false });
  });

  it("is used by an empty transaction once its own was given up, without its payments", async () => {
    const here = await begin("sqlite");
    const { devnet, ledger, start, pay, balanceOf } = here;
    const { relayer, seller } = devnet.accounts;
    const former = await start({ settleTimeoutSeconds: 1 });
    await devnet.setAutomine(false);
    expect(await settle(former, await pay())).toMatchObject({ success: false });
    await former.close();
    await withDatabase(ledger.url, async ({ execute }) => {
      await execute(
        "update payments set state = 'failed', transaction_id = null, reason = 'expired'",
      );
      await execute("update transactions set state = 'lost'");
    });
    await devnet.client.dropTransaction({ hash: await findPending(here) });
    await devnet.setAutomine(true);

    const facilitator = await start();

    await vi.waitFor(async () => expect(await countUsed(here)).toBe(1), 20_000);
    const { transactions } = await devnet.client.getBlock({ includeTransactions: true });
    expect(transactions).toMatchObject([{ nonce: 0, to: toLowerHex(relayer.address) }]);
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect(await balanceOf(seller.address)).toBe(1_000n);
  });

  it("is kept when it was used after a node took the transaction, which then answers late", async () => {
    const here = await begin("sqlite");
    const { devnet, start, pay, balanceOf } = here;
    let sends = 0;
    let hidden = 0;
    proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
      if (method === "eth_sendRawTransaction") sends += 1;
      // The first form is mined before its replacement comes.
      if (method === "eth_sendRawTransaction" && sends === 2) await devnet.mine();
      if (method !== "eth_getTransactionReceipt" || sends < 2 || hidden === 3) return ask();
      hidden += 1;
      return { result: null };
    });
    await devnet.setAutomine(false);
    const facilitator = await start({
      network: { rpcUrls: [proxy.url] },
      times: { resendMs: 50, replaceMs: 100, loseMs: 600_000 },
    });
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    const { metrics } = facilitator;
    const refused = await metrics.getSingleMetricAsString("coinslot_send_errors_total");
    expect(refused).toMatch(/error="nonce_too_low"} 1$/m);
    expect(await countUsed(here)).toBe(1);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
    const transactions = await metrics.getSingleMetricAsString("coinslot_transactions_total");
    expect(transactions).not.toContain('event="lost"');
  });

  it("is sent again no sooner than usual while a node lags that returns the number of used ones", async () => {
    const here = await begin("sqlite");
    const { devnet, start, pay } = here;
    let sends = 0;
    let polls = 0;
    let lagging: string | undefined;
    proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
      if (method === "eth_sendRawTransaction") sends += 1;
      if (method === "eth_getTransactionReceipt") polls += 1;
      return method === "eth_getTransactionCount" && lagging ? { result: lagging } : ask();
    });
    const times = { resendMs: 600_000 };
    const facilitator = await start({ network: { rpcUrls: [proxy.url] }, times });
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    lagging = "0x1";
    await devnet.client.waitForTransactionReceipt({ hash: await useKeyElsewhere(here) });
    [sends, polls] = [0, 0];
    const waiting = Promise.allSettled([settle(facilitator, await pay())]);
    await vi.waitFor(() => expect(polls).toBeGreaterThanOrEqual(8), 20_000);
    // Once for the plan, and once for the answer that the nonce is used.
    expect(sends).toBe(2);
    await facilitator.close();
    await waiting;
  });

  it("is used by the next attempt when signing fails", async () => {
    const here = await begin("sqlite");
    const { devnet, start, pay, balanceOf } = here;
    const { relayer, seller } = devnet.accounts;
    let failures = 0;
    const moody = toAccount({
      ...relayer,
      async signTransaction(transaction, options) {
        failures += 1;
        if (failures <= 2) throw new Error("the key store is busy");
        return relayer.signTransaction(transaction, options);
      },
    });
    const facilitator = await start({ network: { relayer: moody }, times: { sweepMs: 50 } });
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect(failures).toBe(4);
    expect(await countUsed(here)).toBe(2);
    expect(await balanceOf(seller.address)).toBe(2_000n);
  });

  it("is used by the next attempt when the node returns no gas price", async () => {
    const here = await begin("sqlite");
    const { devnet, start, pay, balanceOf } = here;
    let isMute = false;
    let unanswered = 0;
    proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
      if (!isMute || method !== "eth_maxPriorityFeePerGas") return ask();
      unanswered += 1;
      return { error: { code: -32000, message: "no history of fees" } };
    });
    const facilitator = await start({
      network: { rpcUrls: [proxy.url], blockTimeSeconds: 1 },
      times: { sweepMs: 50 },
    });
    isMute = true;
    const settled = settle(facilitator, await pay());
    await vi.waitFor(() => expect(unanswered).toBeGreaterThan(1), 20_000);
    isMute = false;
    expect(await settled).toMatchObject({ success: true });
    expect(await countUsed(here)).toBe(1);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
  });

  it("is filled again when its transaction was dropped, and later ones are mined too", async () => {
    const here = await begin("sqlite");
    const { devnet, start, pay, balanceOf } = here;
    const facilitator = await start({
      maxPaymentsPerTransaction: 1,
      times: { resendMs: 100, replaceMs: 60_000 },
    });
    await devnet.setAutomine(false);
    const payments = await Promise.all([pay(), pay(), pay()]);
    const settled = Promise.all(payments.map((paid) => settle(facilitator, paid)));
    await vi.waitFor(async () => expect(await pendingTransactions(here)).toBe(3), 20_000);
    const { transactions } = await devnet.client.getBlock({
      blockTag: "pending",
      includeTransactions: true,
    });
    const middle = transactions.find(({ nonce }) => nonce === 1);
    if (middle === undefined) throw new Error("No transaction has nonce 1");
    await devnet.client.dropTransaction({ hash: middle.hash });
    await devnet.mine();
    await vi.waitFor(async () => {
      await devnet.mine();
      expect(await countUsed(here)).toBe(3);
    }, 20_000);
    expect((await settled).map(({ success }) => success)).toEqual([true, true, true]);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(3_000n);
  });
});
