import { isHex, keccak256, toHex } from "viem";
import { afterEach, describe, expect, it, vi } from "vitest";
import * as z from "zod";
import type { Logger } from "../../logger.ts";
import { type NodeProxy, startNodeProxy } from "../../testing/node-proxy.ts";
import { settle } from "../../testing/settling-actions.ts";
import {
  type Engine,
  enginesByDay,
  type SettlingDevnet,
  startSettlingDevnet,
} from "../../testing/settling-devnet.ts";

const receiptSchema = z.looseObject({ blockNumber: z.string(), blockHash: z.string() });
type Receipt = z.infer<typeof receiptSchema>;
const patience = { timeout: 20_000 };

let settling: SettlingDevnet | undefined;
let proxy: NodeProxy | undefined;

afterEach(async () => {
  await settling?.stop();
  await proxy?.close();
  settling = undefined;
  proxy = undefined;
});

/** A devnet behind a node that can misreport one transaction, which then stands in no block. */
async function begin(engine: Engine, { finalAfter = 1_000 } = {}) {
  const here = await startSettlingDevnet(engine);
  settling = here;
  const { devnet } = here;
  let lie: ((raw: unknown) => Promise<Receipt>) | undefined;
  const known = new Map<unknown, Receipt>();
  let last: Receipt | undefined;
  let movedAsForged: bigint | undefined;
  let behind = 0n;
  let countedBehind = 0;
  proxy = await startNodeProxy(devnet.rpcUrl, async (call, ask) => {
    const { method, params } = call;
    const [raw] = params;
    if (behind > 0n) {
      const head = (await devnet.client.getBlockNumber({ cacheTime: 0 })) - behind;
      call.params = params.map((each) => (each === "latest" ? toHex(head) : each));
      if (method === "eth_blockNumber") return { result: toHex(head) };
      if (method === "eth_getTransactionReceipt") return { result: null };
      if (method === "eth_getTransactionCount" && params[1] !== "latest") countedBehind += 1;
    }
    if (method === "eth_sendRawTransaction" && isHex(raw) && lie !== undefined) {
      const hash = keccak256(raw);
      const make = lie;
      lie = undefined;
      known.set(hash, { ...(await make(raw)), transactionHash: hash });
      return { result: hash };
    }
    if (method !== "eth_getTransactionReceipt") return ask();
    const forged = known.get(raw);
    if (forged !== undefined) {
      // Once: from then on the node is honest.
      known.delete(raw);
      return { result: forged };
    }
    const answer = await ask();
    if ("result" in answer && answer.result !== null) last = receiptSchema.parse(answer.result);
    return answer;
  });
  const errors: string[] = [];
  const note = (_fields: object, text?: string) => void errors.push(text ?? "");
  const logger: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: note };
  const facilitator = await here.start({
    network: { rpcUrls: [proxy.url], blockTimeSeconds: 1, finalAfter },
    times: { sweepMs: 100, resendMs: 200, replaceMs: 60_000, loseMs: 600 },
    logger,
  });
  return {
    ...here,
    facilitator,
    errors,
    /**
     * The next transaction is dropped, and gets the receipt of another one.
     *
     * @param changes by default, none
     */
    swapReceipt(changes: Partial<Receipt> = {}) {
      lie = async () => {
        if (last === undefined) throw new Error("There is no receipt yet");
        return { ...last, ...changes };
      };
    },
    /**
     * The next transaction is mined and reorganised away, and its receipt names the new block.
     *
     * @param changes by default, none
     */
    forgeReceipt(changes: Partial<Receipt> = {}) {
      lie = async (raw) => {
        const { client } = devnet;
        if (!isHex(raw)) throw new TypeError("No transaction");
        const hash = await client.sendRawTransaction({ serializedTransaction: raw });
        // Mined at once, and indexed a moment later.
        const receipt = await vi.waitFor(() => readReceipt(devnet.rpcUrl, hash), patience);
        await devnet.reorg({ depth: 1 });
        const { hash: blockHash } = await client.getBlock();
        movedAsForged = await here.balanceOf(devnet.accounts.seller.address);
        return { ...receipt, blockHash, ...changes };
      };
    },
    /** The node shows its chain up to so many blocks below the head. */
    lag(blocks: bigint) {
      behind = blocks;
    },
    /** Counts of nonces at a block's number since the node lags. */
    countedBehind: () => countedBehind,
    countUsed: () =>
      devnet.client.getTransactionCount({ address: devnet.accounts.relayer.address }),
    /** Income while a receipt was forged. A relayer may send the transaction again at once. */
    movedAsForged: () => movedAsForged,
    income: () => here.balanceOf(devnet.accounts.seller.address),
  };
}

/** A receipt as a node writes it. */
async function readReceipt(rpcUrl: string, hash: string): Promise<Receipt> {
  const call = { jsonrpc: "2.0", id: 1, method: "eth_getTransactionReceipt", params: [hash] };
  const headers = { "content-type": "application/json" };
  const response = await fetch(rpcUrl, { method: "POST", headers, body: JSON.stringify(call) });
  return z.object({ result: receiptSchema }).parse(await response.json()).result;
}

describe.each(enginesByDay("sqlite"))(
  "a transaction that counts as included and stands in no block, on %s",
  (engine) => {
    it("holds up no later payment: its nonce is used after all", async () => {
      const { facilitator, pay, swapReceipt, countUsed, errors } = await begin(engine);
      expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
      swapReceipt();
      expect(await settle(facilitator, await pay())).toMatchObject({ success: false });
      expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
      expect(await countUsed()).toBe(3);
      expect(errors.filter((text) => text.includes("counted as included"))).toHaveLength(1);
    });

    it("moves the money that a forged receipt has shown, once", async () => {
      const { facilitator, pay, forgeReceipt, countUsed, movedAsForged, income } =
        await begin(engine);
      forgeReceipt();
      expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
      expect(movedAsForged()).toBe(0n);
      expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
      await vi.waitFor(async () => expect(await income()).toBe(2_000n), patience);
      expect(await countUsed()).toBe(2);
      await vi.waitFor(async () => {
        const { payments } = await facilitator.payments.list({ state: "confirmed" });
        expect(payments).toHaveLength(2);
      }, patience);
    });

    it.each([
      ["of another transaction", "swapReceipt"],
      ["that is forged", "forgeReceipt"],
    ] as const)(
      "is sent again where a receipt %s names a block far above the chain",
      async (_, lie) => {
        const { devnet, facilitator, pay, income, ...node } = await begin(engine, {
          finalAfter: 2,
        });
        expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
        node[lie]({ blockNumber: "0x3b9aca00" });
        expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
        expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
        expect(await income()).toBe(3_000n);
        await vi.waitFor(async () => {
          await devnet.mine(1);
          const { payments } = await facilitator.payments.list();
          expect(payments.map(({ finalAt }) => finalAt)).not.toContain(undefined);
        }, patience);
      },
    );

    it("is not sent again by the word of a node that lags by more than 64 blocks", async () => {
      const { devnet, facilitator, pay, lag, countedBehind, errors } = await begin(engine, {
        finalAfter: 20,
      });
      await devnet.mine(80);
      expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
      lag(70n);
      const settling = settle(facilitator, await pay());
      const undone = () => errors.filter((text) => text.includes("counted as included"));
      await vi.waitFor(
        () => expect(countedBehind() > 1 || undone().length > 0).toBe(true),
        patience,
      );
      expect(undone()).toEqual([]);
      lag(0n);
      expect(await settling).toMatchObject({ success: true });
    });

    it("moves it also where it counted as final, as on a fork that is gone", async () => {
      const { devnet, facilitator, pay, forgeReceipt, movedAsForged, income } = await begin(
        engine,
        { finalAfter: 2 },
      );
      forgeReceipt();
      expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
      await devnet.mine(4);
      await vi.waitFor(async () => {
        const [payment] = (await facilitator.payments.list()).payments;
        expect(payment?.finalAt).toBeDefined();
      }, patience);
      expect(movedAsForged()).toBe(0n);
      expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
      await vi.waitFor(async () => expect(await income()).toBe(2_000n), patience);
    });
  },
);

it("a receipt of a late transaction that the last endpoint makes up counts for nothing beside two others", async () => {
  const here = await startSettlingDevnet("sqlite");
  settling = here;
  const { devnet, pay } = here;
  let last: Receipt | undefined;
  let lies = 0;
  proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [hash] }, ask) => {
    const answer = await ask();
    if (method !== "eth_getTransactionReceipt" || !("result" in answer)) return answer;
    if (answer.result !== null) {
      last = receiptSchema.parse(answer.result);
      return answer;
    }
    if (last === undefined) return answer;
    lies += 1;
    return { result: { ...last, transactionHash: hash } };
  });
  const facilitator = await here.start({
    network: { rpcUrls: [devnet.rpcUrl, `${devnet.rpcUrl}/`, proxy.url], blockTimeSeconds: 1 },
    times: { sweepMs: 100, resendMs: 200, replaceMs: 60_000, loseMs: 600 },
  });
  expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
  const { transactions } = await devnet.client.getBlock();
  last = await readReceipt(devnet.rpcUrl, transactions[0] ?? "");
  await devnet.setAutomine(false);

  const pending = settle(facilitator, await pay());
  await vi.waitFor(() => expect(lies).toBeGreaterThan(2), patience);
  await devnet.setAutomine(true);
  await devnet.mine();

  expect(await pending).toMatchObject({ success: true });
});
