import { FacilitatorError } from "@coinslot/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Claim } from "../schemes/scheme.ts";
import { createInterferingPool } from "../testing/interfering-pool.ts";
import {
  createPool,
  startingBalance,
  startVerifyingDevnet,
  type VerifyingDevnet,
} from "../testing/verifying-devnet.ts";
import { createSimulator } from "./simulator.ts";

let chain: VerifyingDevnet;
beforeAll(async () => {
  chain = await startVerifyingDevnet();
});
afterAll(() => chain.stop());

type Change = Parameters<VerifyingDevnet["sign"]>[0];

async function transfer(change: Change = {}): Promise<Claim> {
  const { authorization, signature } = await chain.sign(change);
  const { network, token } = chain.devnet;
  const { from: payer, nonce } = authorization;
  const id = { network, asset: change.asset ?? token, payer, nonce };
  return { kind: "eip3009", id, authorization, signature };
}

const many = (count: number, change?: Change) =>
  Promise.all(Array.from({ length: count }, () => transfer(change)));

describe("a node in a simulation", () => {
  test("a node in a simulation that grants less gas than requested is asked again for the missing transfers", async () => {
    const counted = createInterferingPool(chain.devnet, (call) => {
      call.gas = "0x2dc6c0";
      return undefined;
    });
    const simulator = createSimulator({ rpc: counted.pool, now: Date.now });
    const results = await simulator.simulateAll(await many(12));
    expect(results).toHaveLength(12);
    expect(results.every(({ isExact }) => isExact)).toBe(true);
    expect(counted.calls()).toBeGreaterThan(1);
    const before = counted.calls();
    await simulator.simulateAll(await many(4));
    expect(counted.calls() - before).toBeLessThanOrEqual(2);
  });

  test("a node in a simulation that refuses large calls is asked in smaller ones", async () => {
    const counted = createInterferingPool(chain.devnet, (call) =>
      call.to === undefined && call.data.length > 14_000
        ? { code: -32000, message: "too large" }
        : undefined,
    );
    const simulator = createSimulator({ rpc: counted.pool, now: Date.now });
    const results = await simulator.simulateAll(await many(16));
    expect(results.map(({ isExact }) => isExact)).toEqual(Array(16).fill(true));
    const refused = counted.answered();
    await simulator.simulateAll(await many(16));
    expect(counted.answered()).toBe(refused);
  });

  test("a node in a simulation that refuses calls without a contract is asked singly, at one block, for a minute", async () => {
    const counted = createInterferingPool(chain.devnet, (call) =>
      call.to === undefined ? { code: -32602, message: "missing field to" } : undefined,
    );
    let now = 1_000_000;
    const simulator = createSimulator({ rpc: counted.pool, now: () => now });
    const smart = await chain.devnet.deploySmartAccount({
      owner: chain.devnet.accounts.buyer.address,
    });
    await chain.devnet.mint({ to: smart, amount: 5_000n });
    const transfers = [
      await transfer(),
      await transfer({ amount: startingBalance + 1n }),
      await transfer({ authorization: { from: smart } }),
      await transfer({ changeSignature: () => "0x1234" }),
      await transfer({ asset: "0x00000000000000000000000000000000000a55e7" }),
    ];
    const block = await chain.devnet.client.getBlock();
    const results = await simulator.simulateAll(transfers);
    const at = { blockNumber: block.number, blockTimestamp: block.timestamp };
    expect(results).toMatchObject([
      { outcome: "succeeded", balance: startingBalance, payerHasCode: false, isUsed: false, ...at },
      { outcome: "reverted", revertReason: "ERC20: transfer amount exceeds balance", ...at },
      { outcome: "succeeded", balance: 5_000n, payerHasCode: true, ...at },
      { outcome: "reverted", payerHasCode: false },
      { outcome: "succeeded", assetHasCode: false },
    ]);
    expect(results.map(({ isExact }) => isExact)).toEqual([
      undefined,
      false,
      undefined,
      undefined,
      false,
    ]);

    const refused = counted.answered();
    await simulator.simulate(await transfer());
    expect(counted.answered()).toBe(refused);
    now += 60_001;
    await simulator.simulate(await transfer());
    expect(counted.answered()).toBe(refused + 1);
  });

  test("a node in a simulation that fails on one transfer leaves the others' results", async () => {
    const poison = await transfer({ authorization: { validBefore: 4_000_000_000n } });
    const marker = poison.authorization.nonce.slice(2);
    const { pool } = createInterferingPool(chain.devnet, ({ to, data }) => {
      if (to === undefined) return { code: -32602, message: "missing field to" };
      const isTransfer = data.length > 400 && data.includes(marker);
      return isTransfer ? { code: -32000, message: "intrinsic gas too low" } : undefined;
    });
    const simulator = createSimulator({ rpc: pool, now: Date.now });
    const transfers = [await transfer(), poison, await transfer()];
    const trials = await Promise.allSettled(transfers.map((each) => simulator.simulate(each)));
    expect(trials).toMatchObject([
      { status: "fulfilled", value: { outcome: "succeeded" } },
      { status: "rejected", reason: { kind: "unavailable", cause: { code: -32000 } } },
      { status: "fulfilled", value: { outcome: "succeeded" } },
    ]);
  });

  test("is called with the relayer as sender, at an affordable price", async () => {
    const asked: unknown[] = [];
    const { pool } = createInterferingPool(chain.devnet, ({ from, gasPrice }) => {
      asked.push({ from, gasPrice });
      return undefined;
    });
    const { address } = chain.devnet.accounts.relayer;
    let balance = 10n ** 18n;
    const sender = () => ({ from: address, gasPrice: 5_000_000_000n, balance });
    const simulator = createSimulator({ rpc: pool, sender, now: Date.now });
    expect(await simulator.simulate(await transfer())).toMatchObject({ isExact: true });
    // Not enough for all the gas that the call names.
    balance = 10n ** 12n;
    expect(await simulator.simulate(await transfer())).toMatchObject({ isExact: true });
    expect(asked).toEqual([
      { from: address, gasPrice: "0x12a05f200" },
      { from: address, gasPrice: undefined },
    ]);
  });

  test("a node in a simulation that finds the relayer's balance too low is asked without a price for a minute", async () => {
    const poor = createInterferingPool(chain.devnet, ({ gasPrice }) =>
      gasPrice === undefined ? undefined : { code: -32000, message: "insufficient funds" },
    );
    const { address } = chain.devnet.accounts.relayer;
    const sender = () => ({ from: address, gasPrice: 5_000_000_000n, balance: undefined });
    let now = 1_000_000;
    const simulator = createSimulator({ rpc: poor.pool, sender, now: () => now });
    for (const refusals of [1, 1, 2]) {
      expect(await simulator.simulate(await transfer())).toMatchObject({ isExact: true });
      expect(poor.answered()).toBe(refusals);
      if (refusals === 1) now += 30_001;
    }
  });

  test("a node in a simulation that answers calls without a contract with empty data is asked singly too", async () => {
    const { pool } = createInterferingPool(chain.devnet, ({ to }) =>
      to === undefined ? "0x" : undefined,
    );
    const simulator = createSimulator({ rpc: pool, now: Date.now });
    expect(await simulator.simulateAll(await many(2))).toMatchObject([
      { outcome: "succeeded", balance: startingBalance },
      { outcome: "succeeded", balance: startingBalance },
    ]);
  });

  test("a node in a simulation that is unreachable or returns malformed data is an internal fault, not the payment's", async () => {
    const one = await transfer();
    const dead = createPool(chain.devnet, () => Promise.reject(new TypeError("fetch failed")));
    const attempt = createSimulator({ rpc: dead, now: Date.now }).simulate(one);
    await expect(attempt).rejects.toMatchObject({ kind: "unavailable", isRetryable: true });
    await expect(attempt).rejects.toBeInstanceOf(FacilitatorError);
    dead.close();

    const malformed = createInterferingPool(chain.devnet, () => "0x1234");
    await expect(
      createSimulator({ rpc: malformed.pool, now: Date.now }).simulate(one),
    ).rejects.toMatchObject({ kind: "bad_response" });
  });
});
