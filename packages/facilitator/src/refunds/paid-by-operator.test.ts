import { systemClock } from "@coinslot/chain";
import { testUsdt0, withDatabase } from "@coinslot/devnet";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { CoinslotFacilitator } from "../create-facilitator.ts";
import type { Refund } from "../ledger/refunds/refund.ts";
import { startNodeProxy } from "../testing/node-proxy.ts";
import {
  becomes,
  floatKey,
  patience,
  settled,
  useRefundingDevnet,
  withFloat,
} from "../testing/refunding-devnet.ts";
import { enginesByDay, type SettlingDevnet } from "../testing/settling-devnet.ts";

const timeout = 120_000;

describe.each(enginesByDay("sqlite"))("refunds that the operator pays, on %s", (engine) => {
  const begin = useRefundingDevnet();

  /** The operator's plain transfer to a refund's payer. */
  async function send({ devnet }: SettlingDevnet, { payer }: Refund, amount: bigint) {
    const account = devnet.accounts.seller;
    const hash = await devnet.client.writeContract({
      account,
      chain: null,
      address: devnet.token,
      abi: testUsdt0.abi,
      functionName: "transfer",
      args: [payer, amount],
    });
    await devnet.client.waitForTransactionReceipt({ hash });
    return hash;
  }

  /** A refund whose token seems to lack EIP-3009, and its operator's transaction. */
  async function payByHand(
    here: SettlingDevnet,
    facilitator: CoinslotFacilitator,
    payment: string,
  ) {
    const refund = await facilitator.refunds.create({ payment, idempotencyKey: "one" });
    await executeIn(here)(
      "update refunds set state = 'manual', cause = 'no_eip3009', next_at = 9000000000000",
    );
    const transactionHash = await send(here, refund, 1_000n);
    await facilitator.refunds.markPaid({ id: refund.id, transactionHash });
    return { refund, transactionHash };
  }

  it(
    "are final with a transaction of their own that moves the exact amount, and end when cancelled",
    async () => {
      const here = await begin(engine, { float: 0n });
      const facilitator = await here.start({ ...withFloat, refunds: { privateKey: floatKey } });
      const refunds: Refund[] = [];
      for (const idempotencyKey of ["one", "two", "three"]) {
        const payment = await settled(facilitator, here);
        const refund = await facilitator.refunds.create({ payment, idempotencyKey });
        refunds.push(
          await becomes(facilitator, here, refund, { state: "waiting", cause: "float_balance" }),
        );
      }
      const [one, two, three] = refunds;
      if (!one || !two || !three) throw new Error("unreachable");
      // As of a token without EIP-3009. The worker has no need to look at it.
      await withDatabase(here.ledger.url, ({ execute }) =>
        execute(
          "update refunds set state = 'manual', cause = 'no_eip3009', next_at = 9000000000000",
        ),
      );
      const less = await send(here, one, 999n);
      const markPaid = (refund: Refund, transactionHash: `0x${string}`) =>
        facilitator.refunds.markPaid({ id: refund.id, transactionHash });
      await expect(markPaid(one, less)).rejects.toMatchObject({ reason: "not_paid" });
      const sale = (await facilitator.payments.get(one.payment))?.inclusion?.transactionHash;
      await expect(markPaid(one, sale ?? "0x")).rejects.toMatchObject({ reason: "not_paid" });

      const exact = await send(here, one, 1_000n);
      // Both at once: the transaction has one such transfer.
      const both = await Promise.allSettled([markPaid(one, exact), markPaid(two, exact)]);
      expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      const isFirst = both[0]?.status === "fulfilled";
      const [paid, open] = isFirst ? [one, two] : [two, one];
      expect(await markPaid(paid, exact)).toMatchObject({ cause: "operator_paid" });
      await becomes(facilitator, here, paid, { state: "final", transactionHash: exact });
      await withDatabase(here.ledger.url, async ({ read }) => {
        const rows = await read(
          `select debit, credit from book_entries where source_id = '${paid.id}'`,
        );
        expect(rows).toEqual([{ debit: 3, credit: 4 }]);
      });
      await expect(facilitator.refunds.cancel(paid.id)).rejects.toMatchObject({
        reason: "wrong_state",
      });

      expect(await facilitator.refunds.cancel(open.id)).toMatchObject({ state: "void" });
      expect(await facilitator.refunds.cancel(open.id)).toMatchObject({ cause: "cancelled" });
      // A cancelled amount may be given back by another refund.
      const again = { payment: open.payment, idempotencyKey: "again" };
      expect(await facilitator.refunds.create(again)).toMatchObject({
        n: 1,
        nonce: open.nonce,
        amount: 1_000n,
      });
    },
    timeout + patience.timeout,
  );

  it(
    "are cancelled the last first, so that none is paid behind an unused number",
    async () => {
      const here = await begin(engine, { float: 0n });
      const facilitator = await here.start({ ...withFloat, refunds: { privateKey: floatKey } });
      const payment = await settled(facilitator, here);
      const { refunds } = facilitator;
      const first = await refunds.create({ payment, amount: 400n, idempotencyKey: "first" });
      const second = await refunds.create({ payment, amount: 600n, idempotencyKey: "second" });
      await becomes(facilitator, here, second, { state: "scheduled", cause: "earlier_refund" });
      await expect(refunds.cancel(first.id)).rejects.toThrow(second.id);
      expect(await refunds.cancel(second.id)).toMatchObject({ state: "void" });
      expect(await refunds.cancel(first.id)).toMatchObject({ state: "void" });
    },
    timeout + patience.timeout,
  );

  it(
    "are the operator's, once the form that was signed before is over",
    async () => {
      const here = await begin(engine, { float: 0n });
      const facilitator = await here.start({ ...withFloat, refunds: { privateKey: floatKey } });
      const payment = await settled(facilitator, here);
      const refund = await facilitator.refunds.create({ payment, idempotencyKey: "one" });
      await becomes(facilitator, here, refund, { state: "waiting", cause: "float_balance" });
      const signUntil = (validBefore: string) =>
        executeIn(here)(
          `update refunds set state = 'manual', cause = 'no_eip3009', next_at = 9000000000000,
            valid_before = ${validBefore}`,
        );
      const transactionHash = await send(here, refund, 1_000n);
      const markPaid = () => facilitator.refunds.markPaid({ id: refund.id, transactionHash });
      await signUntil("(select valid_before from payments where id = payment_id)");
      await expect(markPaid()).rejects.toMatchObject({ reason: "wrong_state" });
      await expect(facilitator.refunds.cancel(refund.id)).rejects.toMatchObject({
        reason: "wrong_state",
      });
      // As a time long ago.
      await signUntil("amount");
      expect(await markPaid()).toMatchObject({ cause: "operator_paid" });
      await becomes(facilitator, here, refund, { state: "final", transactionHash });
    },
    timeout + patience.timeout,
  );

  it(
    "are not the operator's where a form that is over has been executed",
    async () => {
      const here = await begin(engine);
      const facilitator = await here.start({ ...withFloat, refunds: { privateKey: floatKey } });
      const payment = await settled(facilitator, here);
      const refund = await facilitator.refunds.create({ payment, idempotencyKey: "one" });
      await becomes(facilitator, here, refund, { state: "final" });
      // As in a restored backup whose form is over, after a look at which nodes reverted.
      await executeIn(here)(
        `update refunds set state = 'manual', cause = 'no_eip3009', valid_before = amount,
          next_at = 9000000000000`,
      );
      await here.devnet.mine(10);
      await expect(facilitator.refunds.cancel(refund.id)).rejects.toMatchObject({
        reason: "wrong_state",
      });
    },
    timeout + patience.timeout,
  );

  it.each([
    ["", false],
    [", in whichever block a node has placed it", true],
  ])(
    "go back to the operator alone when a reorganisation takes the transaction away%s",
    async (_, isMisplaced) => {
      const here = await begin(engine);
      const { devnet } = here;
      let isLying = false;
      const liar = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
        const answer = await ask();
        if (!isLying || method !== "eth_getTransactionReceipt") return answer;
        const receipt = "result" in answer ? answer.result : null;
        return { result: receipt && { ...Object(receipt), blockNumber: "0x1" } };
      });
      onTestFinished(() => liar.close());
      const facilitator = await here.start({
        ...withFloat,
        network: { finalAfter: 4, rpcUrls: [liar.url, devnet.rpcUrl] },
        refunds: { privateKey: floatKey },
      });
      await devnet.mine(1);
      const refund = await facilitator.refunds.create({
        payment: await settled(facilitator, here),
        idempotencyKey: "one",
      });
      // As after a form of a former float, whose nonce has moved tokens to another account.
      const execute = executeIn(here);
      await execute(
        `update refunds set state = 'manual', cause = 'executed_elsewhere', valid_before = amount,
          float = '0x00000000000000000000000000000000000000f1', next_at = 9000000000000`,
      );
      isLying = isMisplaced;
      const hash = await send(here, refund, 1_000n);
      await facilitator.refunds.markPaid({ id: refund.id, transactionHash: hash });
      await vi.waitFor(
        async () =>
          expect(await facilitator.refunds.get(refund.id)).toMatchObject({ state: "confirmed" }),
        patience,
      );
      await devnet.reorg({ depth: 1 });
      // It may come back in one of the next blocks.
      expect(await lookAgain(here, refund)).not.toBe("manual");

      await becomes(facilitator, here, refund, { state: "manual", cause: "executed_elsewhere" });
      expect(await lookAgain(here, refund)).toBe("manual");
      expect(await facilitator.refunds.cancel(refund.id)).toMatchObject({ state: "void" });
    },
    timeout + patience.timeout,
  );

  it.each([
    ["has nothing of it", () => null],
    ["shows it as failed", (answer: object) => ({ ...answer, status: "0x0", logs: [] })],
  ])(
    "are paid by a transaction, and are final once the first endpoint has it, which %s before",
    async (_, lie) => {
      const here = await begin(engine);
      const { devnet } = here;
      let lies: number | undefined;
      const liar = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
        const answer = await ask();
        if (lies !== undefined && method === "eth_getLogs") return { result: [] };
        if (lies === undefined || method !== "eth_getTransactionReceipt") return answer;
        lies += 1;
        return { result: lie("result" in answer ? Object(answer.result) : {}) };
      });
      onTestFinished(() => liar.close());
      const facilitator = await here.start({
        network: { finalAfter: 4, rpcUrls: [liar.url, devnet.rpcUrl] },
        refunds: { privateKey: floatKey },
      });
      const payment = await settled(facilitator, here);
      lies = 0;
      const { refund, transactionHash } = await payByHand(here, facilitator, payment);
      await devnet.mine(10);
      const before = lies;
      await vi.waitFor(() => expect(lies).toBeGreaterThan(before + 2), patience);
      // Its operator would send it again.
      expect(await facilitator.refunds.get(refund.id)).toMatchObject({
        state: "confirmed",
        transactionHash,
      });
      lies = undefined;
      await becomes(facilitator, here, refund, { state: "final", transactionHash });
    },
    timeout + patience.timeout,
  );

  it(
    "are final beside an endpoint that keeps logs, and no receipts by hash",
    async () => {
      const here = await begin(engine);
      const { devnet } = here;
      let isWithout = false;
      const node = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) =>
        isWithout && method === "eth_getTransactionReceipt" ? { result: null } : ask(),
      );
      onTestFinished(() => node.close());
      const facilitator = await here.start({
        network: { finalAfter: 4, rpcUrls: [devnet.rpcUrl, node.url] },
        refunds: { privateKey: floatKey },
      });
      const payment = await settled(facilitator, here);
      isWithout = true;
      const { refund, transactionHash } = await payByHand(here, facilitator, payment);
      await becomes(facilitator, here, refund, { state: "final", transactionHash });
    },
    timeout + patience.timeout,
  );

  it(
    "are final by logs, after a look at which no endpoint returned any",
    async () => {
      const here = await begin(engine);
      const { devnet } = here;
      let isWithout = false;
      let failing = 0;
      let failed = 0;
      const node = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
        if (!isWithout) return ask();
        if (method === "eth_getTransactionReceipt") return { result: null };
        if (method !== "eth_getLogs" || failed >= failing) return ask();
        failed += 1;
        return { error: { code: -32000, message: "header not found" } };
      });
      onTestFinished(() => node.close());
      const facilitator = await here.start({
        network: { finalAfter: 4, rpcUrls: [node.url] },
        refunds: { privateKey: floatKey },
      });
      const payment = await settled(facilitator, here);
      const { refund, transactionHash } = await payByHand(here, facilitator, payment);
      isWithout = true;
      failing = 1;
      await vi.waitFor(() => expect(failed).toBe(failing), patience);
      await devnet.mine(10);
      await becomes(facilitator, here, refund, { state: "final", transactionHash });
    },
    timeout + patience.timeout,
  );

  it(
    "go back to the operator beside an endpoint that is silent for ten minutes",
    async () => {
      const here = await begin(engine);
      const { devnet } = here;
      let faults: number | undefined;
      const node = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
        if (faults === undefined || method !== "eth_getTransactionReceipt") return ask();
        faults += 1;
        return { error: { code: -32000, message: "header not found" } };
      });
      onTestFinished(() => node.close());
      let passedMs = 0;
      const facilitator = await here.start({
        network: { finalAfter: 4, rpcUrls: [devnet.rpcUrl, node.url] },
        refunds: { privateKey: floatKey },
        clock: { ...systemClock, now: () => systemClock.now() + passedMs },
      });
      const payment = await settled(facilitator, here);
      await devnet.mine(3);
      const { refund } = await payByHand(here, facilitator, payment);
      faults = 0;
      await devnet.reorg({ depth: 1 });
      await devnet.mine(10);
      await vi.waitFor(() => expect(faults).toBeGreaterThan(4), patience);
      expect(await facilitator.refunds.get(refund.id)).toMatchObject({ cause: "operator_paid" });
      // Of the time between two looks, 150 s of silence count at most.
      const isManual = async () => (await facilitator.refunds.get(refund.id))?.state === "manual";
      for (let looks = 0; looks < 20 && !(await isManual()); looks++) {
        const before: number = faults;
        passedMs += 150_000;
        await vi.waitFor(
          async () => expect((await isManual()) || (faults ?? 0) > before).toBe(true),
          patience,
        );
      }
      await becomes(facilitator, here, refund, { state: "manual" });
    },
    timeout + patience.timeout,
  );

  it(
    "keep their transaction while no node can be asked about it",
    async () => {
      const here = await begin(engine);
      const { devnet } = here;
      let faults: number | undefined;
      const node = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
        if (faults === undefined || method !== "eth_getTransactionReceipt") return ask();
        faults += 1;
        return { error: { code: -32000, message: "header not found" } };
      });
      onTestFinished(() => node.close());
      const facilitator = await here.start({
        network: { finalAfter: 40, rpcUrls: [node.url] },
        refunds: { privateKey: floatKey },
        // One of its payments may wait for the same receipts.
        times: { refundMs: 5 },
      });
      const payment = await settled(facilitator, here);
      const { refund, transactionHash } = await payByHand(here, facilitator, payment);
      await becomes(facilitator, here, refund, { state: "confirmed" });
      faults = 0;
      await vi.waitFor(() => expect(faults).toBeGreaterThan(2), patience);
      expect(await facilitator.refunds.get(refund.id)).toMatchObject({
        state: "confirmed",
        transactionHash,
      });
    },
    timeout + patience.timeout,
  );

  it(
    "are not paid by the float behind the operator's back, unless approved",
    async () => {
      const here = await begin(engine);
      const facilitator = await here.start(withFloat);
      const payment = await settled(facilitator, here);
      const refund = await facilitator.refunds.create({ payment, idempotencyKey: "one" });
      const execute = executeIn(here);
      // As where a node was wrong about the token: the chain lets it be signed now.
      await execute("update refunds set state = 'manual', cause = 'no_eip3009'");
      expect(await lookAgain(here, refund)).toBe("manual");

      await facilitator.refunds.approve(refund.id);
      await becomes(facilitator, here, refund, { state: "final" });
    },
    timeout + patience.timeout,
  );
});

function executeIn({ ledger }: SettlingDevnet) {
  return (statement: string) => withDatabase(ledger.url, ({ execute }) => execute(statement));
}

/** Makes a refund due, and returns its state after the next look at it. */
async function lookAgain(here: SettlingDevnet, { id }: Refund): Promise<unknown> {
  await executeIn(here)(`update refunds set next_at = 0 where id = '${id}'`);
  return withDatabase(here.ledger.url, ({ read }) =>
    vi.waitFor(async () => {
      const [row] = await read(`select next_at, state from refunds where id = '${id}'`);
      expect(Number(row?.next_at)).toBeGreaterThan(0);
      return row?.state;
    }, patience),
  );
}
