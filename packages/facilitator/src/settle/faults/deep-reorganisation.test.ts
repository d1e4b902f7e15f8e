import { systemClock } from "@coinslot/chain";
import { withDatabase } from "@coinslot/devnet";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import * as z from "zod";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import { type NodeAnswer, type NodeCall, startNodeProxy } from "../../testing/node-proxy.ts";
import { floatAccount, floatKey } from "../../testing/refunding-devnet.ts";
import { cancel, idOf, reserve, settle, signAsStranger } from "../../testing/settling-actions.ts";
import {
  type Engine,
  enginesByDay,
  type SettlingDevnet,
  startSettlingDevnet,
} from "../../testing/settling-devnet.ts";

let here: SettlingDevnet | undefined;
afterEach(async () => {
  await here?.stop();
  here = undefined;
});

const network = { finalAfter: 3 };
/** The chain is read often, and believed at once, once a block has left. */
const times = { resendMs: 200, settlingMs: 200, idleMs: 300, disputeMs: 0 };
const patience = { timeout: 60_000, interval: 100 };

type Paid = Awaited<ReturnType<SettlingDevnet["pay"]>>;

async function begin(engine: Engine): Promise<SettlingDevnet> {
  here = await startSettlingDevnet(engine);
  return here;
}

/** Sells one thing, delivers it, and mines until it is final. */
async function sellFinally(facilitator: CoinslotFacilitator, { devnet, pay }: SettlingDevnet) {
  const paid = await pay();
  const sold = { route: "GET /a", resource: "http://a/", wire: "x402v2" } as const;
  const reservation = await reserve(facilitator, paid, sold);
  expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: true });
  await facilitator.deliver(reservation);
  await devnet.mine(5);
  const payment = await find(facilitator, paid, (found) => found?.finalAt !== undefined);
  return { paid, payment };
}

type Found = Awaited<ReturnType<CoinslotFacilitator["payments"]["list"]>>["payments"][number];

/** Waits until a payment is as wanted. */
function find(
  facilitator: CoinslotFacilitator,
  paid: Paid,
  isWanted: (found: Found | undefined) => boolean,
): Promise<Found> {
  return vi.waitFor(async () => {
    const { payments } = await facilitator.payments.list();
    const found = payments.find(({ authorization }) => authorization.nonce === idOf(paid).nonce);
    if (found === undefined || !isWanted(found)) throw new Error(`It is ${found?.state}`);
    return found;
  }, patience);
}

/** The entries of a source, as `debit credit`. */
function entriesOf({ ledger }: SettlingDevnet, source: string): Promise<string[]> {
  return withDatabase(ledger.url, async ({ read }) => {
    const rows = await read(
      `select debit, credit from book_entries where source_id = '${source}' order by id`,
    );
    return rows.map(({ debit, credit }) => `${debit} ${credit}`);
  });
}

async function countMarked({ ledger }: SettlingDevnet): Promise<number> {
  const rows = await withDatabase(ledger.url, ({ read }) =>
    read("select number from final_blocks where left_at is not null"),
  );
  return rows.length;
}

/** The answer of a node that does not keep old blocks (EIP-4444). */
const pruned = { error: { code: 4444, message: "pruned history unavailable" } };

function withOtherHash(answer: NodeAnswer): NodeAnswer {
  if (!("result" in answer)) return answer;
  const block = z.looseObject({ hash: z.string() }).parse(answer.result);
  return { result: { ...block, hash: `0xdead${block.hash.slice(6)}` } };
}

const sold = "1 2";
const takenBack = "2 1";
const lost = "9 2";

describe.each(enginesByDay("sqlite"))("a reorganisation deeper than final, on %s", (engine) => {
  it("has its payments sent again, and no loss where they are final once more", async () => {
    const settling = await begin(engine);
    const { devnet, start, balanceOf } = settling;
    const facilitator = await start({ network, times });
    await devnet.mine(2);
    const { paid, payment } = await sellFinally(facilitator, settling);
    await devnet.reorg({ depth: 6 });
    await devnet.mine();
    const before = payment.inclusion?.blockHash;
    await find(facilitator, paid, (found) => found?.inclusion?.blockHash !== before);
    const again = await vi.waitFor(async () => {
      await devnet.mine();
      const { payments } = await facilitator.payments.list();
      expect(payments[0]?.finalAt).toBeDefined();
      return payments[0];
    }, patience);
    expect(again?.inclusion?.blockHash).not.toBe(payment.inclusion?.blockHash);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
    expect(await entriesOf(settling, payment.id)).toEqual([sold, takenBack, sold]);
    expect(
      await facilitator.metrics.getSingleMetricAsString("coinslot_deep_reorganised_payments_total"),
    ).toContain('delivered="true"} 1');
  });

  it("has a payment found in the block to which it has moved, below the one that showed it as unused", async () => {
    const settling = await begin(engine);
    const { devnet, start, balanceOf } = settling;
    const facilitator = await start({ network, times });
    await sellFinally(facilitator, settling);
    await devnet.mine(12);
    const { paid, payment } = await sellFinally(facilitator, settling);
    await facilitator.close();
    const rawTransaction = await signAsStranger(settling, paid);
    await devnet.reorg({ depth: 15, transactions: [{ rawTransaction, blockIndex: 0 }] });
    const restarted = await start({ network, times });
    const moved = await find(
      restarted,
      paid,
      (found) =>
        found?.inclusion !== undefined &&
        found.inclusion.blockHash !== payment.inclusion?.blockHash,
    );
    expect(moved.inclusion?.blockNumber).toBeLessThan(payment.inclusion?.blockNumber ?? 0);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(2_000n);
    expect(await entriesOf(settling, payment.id)).toEqual([sold, takenBack, sold]);
  });

  it("books the loss of a payment that was cancelled instead, also after a restart", async () => {
    const settling = await begin(engine);
    const { devnet, start } = settling;
    const facilitator = await start({ network, times });
    await devnet.mine(2);
    const { paid, payment } = await sellFinally(facilitator, settling);
    await facilitator.close();
    await devnet.reorg({ depth: 6 });
    await cancel(settling, devnet.accounts.buyer, paid);
    await devnet.mine(5);
    const restarted = await start({ network, times });
    await vi.waitFor(async () => {
      await devnet.mine();
      expect(await entriesOf(settling, payment.id)).toEqual([sold, takenBack, lost]);
    }, patience);
    // It is counted once it is written.
    await vi.waitFor(async () => {
      const lostPayments = "coinslot_lost_payments_total";
      expect(await restarted.metrics.getSingleMetricAsString(lostPayments)).toContain(
        'delivered="true"} 1',
      );
    }, patience);
  });

  it("has a refund that was final given back again, by the same nonce", async () => {
    const settling = await begin(engine);
    const { devnet, start, balanceOf } = settling;
    await devnet.mint({ to: floatAccount.address, amount: 1_000n });
    const facilitator = await start({ network, times, refunds: { privateKey: floatKey } });
    const { payment } = await sellFinally(facilitator, settling);
    await devnet.mine(12);
    const paidBefore = await balanceOf(devnet.accounts.buyer.address);
    const { id } = await facilitator.refunds.create({
      payment: payment.id,
      idempotencyKey: "one",
    });
    const whenFinal = (isWanted: (hash: string | undefined) => boolean) =>
      vi.waitFor(async () => {
        await devnet.mine();
        const refund = await facilitator.refunds.get(id);
        expect(refund?.state).toBe("final");
        const { payments } = await facilitator.payments.list();
        expect(payments.every(({ finalAt }) => finalAt !== undefined)).toBe(true);
        if (refund === undefined || !isWanted(refund.operation)) throw new Error("unreachable");
        return refund;
      }, patience);
    const first = await whenFinal(() => true);
    const { blockNumber = 0 } = first;
    const head = Number(await devnet.client.getBlockNumber());
    await devnet.reorg({ depth: head - blockNumber + 1 });
    await vi.waitFor(async () => {
      const entries = await entriesOf(settling, first.operation ?? "");
      expect(entries.slice(0, 2)).toEqual(["3 4", "4 3"]);
    }, patience);
    const second = await whenFinal(() => true);
    expect(second.nonce).toBe(first.nonce);
    expect(await balanceOf(devnet.accounts.buyer.address)).toBe(paidBefore + 1_000n);
    expect(await balanceOf(floatAccount.address)).toBe(0n);
    expect(await entriesOf(settling, second.operation ?? "")).toEqual(["3 4", "4 3", "3 4"]);
  });
});

it("takes back nothing that a node still shows, whatever another one shows", async () => {
  const settling = await begin("sqlite");
  const { devnet, start } = settling;
  let hidden: number | undefined;
  const liar = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) => {
    const answer = await ask();
    const isHidden = method === "eth_getBlockByNumber" && Number(params[0]) === hidden;
    return isHidden ? withOtherHash(answer) : answer;
  });
  onTestFinished(() => liar.close());
  const logged: string[] = [];
  const note = (_fields: object, text?: string) => void logged.push(text ?? "");
  const options = {
    network: { ...network, rpcUrls: [liar.url, devnet.rpcUrl] },
    times,
    logger: { debug: note, info: note, warn: note, error: note },
  };
  const facilitator = await start(options);
  await devnet.mine(2);
  const { payment } = await sellFinally(facilitator, settling);
  await facilitator.close();
  hidden = payment.inclusion?.blockNumber;
  const restarted = await start(options);
  await vi.waitFor(
    () => expect(logged.filter((text) => text.startsWith("nodes disagree"))).toHaveLength(3),
    patience,
  );
  const { payments } = await restarted.payments.list();
  expect(payments).toMatchObject([{ state: "confirmed", finalAt: payment.finalAt }]);
  expect(await entriesOf(settling, payment.id)).toEqual([sold]);
  expect(await countMarked(settling)).toBe(0);
});

it("takes back nothing while the node that shows it does not answer, and another one lies", async () => {
  const settling = await begin("sqlite");
  const { devnet, start } = settling;
  let final: number | undefined;
  let isRefusing = true;
  let refusals = 0;
  const isFinal = (call: NodeCall) =>
    call.method === "eth_getBlockByNumber" && Number(call.params[0]) === final;
  const liar = await startNodeProxy(devnet.rpcUrl, async (call, ask) => {
    const answer = await ask();
    return isFinal(call) ? withOtherHash(answer) : answer;
  });
  onTestFinished(() => liar.close());
  const honest = await startNodeProxy(devnet.rpcUrl, async (call, ask) => {
    if (!isFinal(call) || !isRefusing) return ask();
    refusals += 1;
    return pruned;
  });
  onTestFinished(() => honest.close());
  const facilitator = await start({ network, times });
  await devnet.mine(2);
  const { payment } = await sellFinally(facilitator, settling);
  await facilitator.close();
  final = payment.inclusion?.blockNumber;
  await start({
    network: { ...network, rpcUrls: [liar.url, honest.url] },
    // However long ago its block was marked.
    times: { ...times, disputeMs: 100 },
  });
  await vi.waitFor(async () => expect(await countMarked(settling)).toBe(1), patience);
  const asked = refusals;
  await vi.waitFor(() => expect(refusals).toBeGreaterThan(asked + 15), patience);
  isRefusing = false;
  await vi.waitFor(async () => expect(await countMarked(settling)).toBe(0), patience);
  expect(await entriesOf(settling, payment.id)).toEqual([sold]);
});

it("has its payments taken back beside an endpoint that is silent for ten minutes", async () => {
  const settling = await begin("sqlite");
  const { devnet, start } = settling;
  let aheadMs = 0;
  let isSilent = false;
  let refusals = 0;
  const silent = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) => {
    const isAsked = method === "eth_getBlockByNumber" && params[0] !== "latest";
    if (!isSilent || !isAsked) return ask();
    refusals += 1;
    return pruned;
  });
  onTestFinished(() => silent.close());
  const facilitator = await start({
    network: { ...network, rpcUrls: [devnet.rpcUrl, silent.url] },
    times: { ...times, disputeMs: 100 },
    clock: { ...systemClock, now: () => performance.now() + aheadMs },
  });
  await devnet.mine(2);
  const { payment } = await sellFinally(facilitator, settling);
  isSilent = true;
  await devnet.reorg({ depth: 6 });
  await devnet.mine();
  const isTakenBack = async () => (await entriesOf(settling, payment.id)).includes(takenBack);
  for (let minutes = 0; minutes < 8; minutes += 1) {
    const before = refusals;
    await vi.waitFor(() => expect(refusals).toBeGreaterThan(before), patience);
    aheadMs += 61_000;
  }
  expect(await isTakenBack()).toBe(false);
  await vi.waitFor(async () => {
    aheadMs += 61_000;
    await devnet.mine();
    expect(await isTakenBack()).toBe(true);
  }, patience);
});

it("stops no finality where a node has pruned the final blocks", async () => {
  const settling = await begin("sqlite");
  const { devnet, start } = settling;
  const facilitator = await start({ network, times });
  await devnet.mine(2);
  const { payment } = await sellFinally(facilitator, settling);
  await facilitator.close();
  const last = payment.inclusion?.blockNumber ?? 0;
  let refusals = 0;
  const node = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) => {
    const number = Number(params[0]);
    const isPruned = method === "eth_getBlockByNumber" && number > 0 && number <= last;
    if (isPruned) refusals += 1;
    return isPruned ? pruned : ask();
  });
  onTestFinished(() => node.close());
  const restarted = await start({ network: { ...network, rpcUrls: [node.url] }, times });
  await sellFinally(restarted, settling);
  expect(refusals).toBeGreaterThan(0);
});

it("is noticed below a final block far above the head, which a lying node has shown", async () => {
  const settling = await begin("sqlite");
  const { devnet, start, ledger } = settling;
  const facilitator = await start({ network, times });
  await devnet.mine(2);
  const { paid, payment } = await sellFinally(facilitator, settling);
  await withDatabase(ledger.url, ({ execute }) =>
    execute(`insert into final_blocks (network, number, hash)
      values ('${devnet.network}', 1000000, '0x${"ab".repeat(32)}')`),
  );
  await devnet.reorg({ depth: 6 });
  await devnet.mine();
  const before = payment.inclusion?.blockHash;
  await find(facilitator, paid, (found) => found?.inclusion?.blockHash !== before);
});

it("is waited for, and taken up by another process that dies and starts meanwhile", async () => {
  const settling = await begin("sqlite");
  const { devnet, start } = settling;
  const patient = { network, times: { ...times, disputeMs: 3_600_000 } };
  const facilitator = await start(patient);
  await devnet.mine(2);
  const { payment } = await sellFinally(facilitator, settling);
  await devnet.reorg({ depth: 6 });
  await vi.waitFor(async () => expect(await countMarked(settling)).toBe(1), patience);
  await facilitator.close();
  const { payments } = await (await start(patient)).payments.list();
  expect(payments).toMatchObject([{ state: "confirmed", finalAt: payment.finalAt }]);
  expect(await countMarked(settling)).toBe(1);
});

it("is noticed where all blocks that the process knows have left", async () => {
  const settling = await begin("sqlite");
  const { devnet, start } = settling;
  let head = 0;
  const node = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) => {
    const answer = await ask();
    if (method === "eth_getBlockByNumber" && params[0] === "latest" && "result" in answer) {
      head = Number(z.looseObject({ number: z.string() }).parse(answer.result).number);
    }
    return answer;
  });
  onTestFinished(() => node.close());
  const facilitator = await start({ network: { ...network, rpcUrls: [node.url] }, times });
  await devnet.mine(2);
  const { paid, payment } = await sellFinally(facilitator, settling);
  await devnet.mine(3);
  const newest = Number(await devnet.client.getBlockNumber());
  await vi.waitFor(() => expect(head).toBe(newest), patience);
  await devnet.reorg({ depth: newest - 3 });
  await devnet.mine();
  const before = payment.inclusion?.blockHash;
  await find(facilitator, paid, (found) => found?.inclusion?.blockHash !== before);
});

it("is noticed at the next sale, where the process has read no block between", async () => {
  const settling = await begin("sqlite");
  const { devnet, start } = settling;
  const idle = { ...times, idleMs: 3_600_000 };
  const facilitator = await start({ network, times: idle });
  await devnet.mine(2);
  const { paid, payment } = await sellFinally(facilitator, settling);
  await devnet.mine(20);
  await devnet.reorg({ depth: 26 });
  await devnet.mine(1);
  await sellFinally(facilitator, settling);
  const before = payment.inclusion?.blockHash;
  await find(facilitator, paid, (found) => found?.inclusion?.blockHash !== before);
});

it("costs a process one header at the begin of its watch, where there was none", async () => {
  const settling = await begin("sqlite");
  const { devnet, start } = settling;
  const facilitator = await start({ network, times });
  await devnet.mine(2);
  const { payment } = await sellFinally(facilitator, settling);
  await devnet.mine(5);
  await facilitator.close();
  const asked: unknown[] = [];
  const node = await startNodeProxy(devnet.rpcUrl, ({ method, params }, ask) => {
    if (method === "eth_getBlockByNumber") asked.push(params[0]);
    return ask();
  });
  onTestFinished(() => node.close());
  await start({ network: { ...network, rpcUrls: [node.url] }, times });
  await vi.waitFor(
    () => expect(asked.filter((block) => block === "latest").length).toBeGreaterThan(5),
    patience,
  );
  expect(asked.filter((block) => block !== "latest" && block !== "0x0")).toEqual([
    `0x${payment.inclusion?.blockNumber.toString(16)}`,
  ]);
});
