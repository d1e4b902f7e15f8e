import { httpPost } from "@coinslot/chain";
import type { Address, Hex } from "@coinslot/protocol";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
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

/** One transfer under many nonces. The token refuses all but the first. */
function copies(one: Claim, count: number): Claim[] {
  return Array.from({ length: count }, (_, index) => {
    if (index === 0) return one;
    const nonce: Hex = `0x${index.toString(16).padStart(64, "0")}`;
    return { ...one, id: { ...one.id, nonce }, authorization: { ...one.authorization, nonce } };
  });
}

/** A pool whose `eth_call`s are held until `release`. */
function createHeldPool() {
  let calls = 0;
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const pool = createPool(chain.devnet, async (request) => {
    if (request.body.includes("eth_call")) {
      calls += 1;
      await released;
    }
    return httpPost(request);
  });
  return { pool, calls: () => calls, release: () => release() };
}

/** An account whose code is a few instructions. */
async function accountWithCode(address: Address, bytecode: Hex): Promise<Address> {
  await chain.devnet.client.setCode({ address, bytecode });
  await chain.devnet.mint({ to: address, amount: startingBalance });
  await chain.devnet.mine();
  return address;
}

describe("a simulated transfer", () => {
  test("returns the payer's balance, the effect and the block, and leaves no state", async () => {
    const { devnet, simulator } = chain;
    const { buyer } = devnet.accounts;
    const result = await simulator.simulate(await transfer());
    const block = await devnet.client.getBlock();
    expect(result).toMatchObject({
      outcome: "succeeded",
      isExact: true,
      isUsed: false,
      balance: startingBalance,
      payerHasCode: false,
      assetHasCode: true,
      blockNumber: block.number,
      blockTimestamp: block.timestamp,
    });
    expect(result.gasUsed).toBeGreaterThan(20_000n);
    expect(result.gasUsed).toBeLessThan(100_000n);
    const again = await simulator.simulate(await transfer());
    expect(again.balance).toBe(startingBalance);
    expect(await devnet.client.getTransactionCount({ address: buyer.address })).toBe(0);
  });

  test("a simulated transfer that fails returns the token's own reason", async () => {
    const result = await chain.simulator.simulate(await transfer({ amount: startingBalance + 1n }));
    expect(result).toMatchObject({
      outcome: "reverted",
      revertReason: "ERC20: transfer amount exceeds balance",
      isExact: false,
    });
  });

  test("a simulated transfer at an address without code neither fails nor has an effect", async () => {
    const asset = "0x00000000000000000000000000000000000a55e7";
    const result = await chain.simulator.simulate(await transfer({ asset }));
    expect(result).toMatchObject({ outcome: "succeeded", isExact: false, assetHasCode: false });
  });
});

describe("transfers simulated together", () => {
  test("share one RPC request per 64, and come back in order", async () => {
    const before = chain.requests.length;
    const amounts = Array.from({ length: 128 }, (_, index) => BigInt(index) * 10_000n);
    const transfers = await Promise.all(amounts.map((amount) => transfer({ amount })));
    const results = await Promise.all(transfers.map((each) => chain.simulator.simulate(each)));
    expect(chain.requests.length - before).toBe(2);
    expect(results.map(({ outcome }) => outcome)).toEqual(
      amounts.map((amount) => (amount <= startingBalance ? "succeeded" : "reverted")),
    );
  });

  test("are isolated: each may spend the whole balance", async () => {
    const results = await chain.simulator.simulateAll(await many(5, { amount: startingBalance }));
    expect(results.every(({ isExact }) => isExact)).toBe(true);
  });

  test("are isolated: a nonce that two of them use is unused in both", async () => {
    const one = await transfer();
    const { nonce } = one.authorization;
    const other = await transfer({ amount: 1n, authorization: { nonce } });
    const results = await chain.simulator.simulateAll([one, other]);
    expect(results.map(({ isUsed, isExact }) => ({ isUsed, isExact }))).toEqual([
      { isUsed: false, isExact: true },
      { isUsed: false, isExact: true },
    ]);
  });

  test("survive payers that burn all gas, or answer and revert with huge data", async () => {
    const { devnet, simulator, requests } = chain;
    const burner = await devnet.deploySmartAccount({ answer: "burnsGas" });
    await devnet.mint({ to: burner, amount: startingBalance });
    // PUSH3 300,000 PUSH0 RETURN, and the same with REVERT.
    const bomb = await accountWithCode(
      "0x0000000000000000000000000000000000b0b001",
      "0x620493e05ff3",
    );
    const dud = await accountWithCode(
      "0x0000000000000000000000000000000000b0b002",
      "0x620493e05ffd",
    );
    const poison = await Promise.all(
      [burner, bomb, dud].map((from) => transfer({ authorization: { from } })),
    );
    const good = await many(9);
    const before = requests.length;
    const mixed = [...poison, ...good.slice(0, 4), ...poison, ...good.slice(4)];
    const results = await simulator.simulateAll(mixed);
    expect(requests.length - before).toBe(1);
    const outcomes = results.map(({ outcome, isExact }) => outcome === "succeeded" && isExact);
    const [bad, fine] = [false, true];
    expect(outcomes).toEqual([
      ...[bad, bad, bad],
      ...[fine, fine, fine, fine],
      ...[bad, bad, bad],
      ...[fine, fine, fine, fine, fine],
    ]);
  });

  test("survive tokens that burn all gas, or answer every call with huge data", async () => {
    const { devnet, simulator } = chain;
    const burner = await devnet.deployMisbehavingToken("burnsGas");
    const bomb = await accountWithoutToken("0x0000000000000000000000000000000000b0b003");
    const good = await many(2);
    const poison = await Promise.all([burner, bomb].map((asset) => transfer({ asset })));
    const results = await simulator.simulateAll([...poison, ...good]);
    expect(results.map(({ isExact }) => isExact)).toEqual([false, false, true, true]);
    expect(results[0]?.outcome).toBe("reverted");
  });

  test("transfers simulated together with long signatures are spread over requests by size", async () => {
    const from = await chain.devnet.deploySmartAccount();
    const changeSignature = (): Hex => `0x${"ab".repeat(4_096)}`;
    const before = chain.requests.length;
    const long = await many(20, { authorization: { from }, changeSignature });
    const results = await chain.simulator.simulateAll(long);
    expect(results.every(({ outcome }) => outcome === "reverted")).toBe(true);
    expect(chain.requests.length - before).toBe(3);
  });
});

describe("transfers that wait for their trial", () => {
  test("transfers that wait for their trial of another payer take their turn before the rest of a payer's 2,000", async () => {
    const { pool, calls, release } = createHeldPool();
    const simulator = createSimulator({ rpc: pool, now: Date.now, maxConcurrent: 1 });
    const flood = Promise.all(
      copies(await transfer(), 2_000).map((each) => simulator.simulate(each)),
    );
    await expect.poll(calls).toBe(1);
    const from = chain.devnet.accounts.relayer.address;
    const trial = simulator.simulate(await transfer({ authorization: { from } }));
    release();
    expect(await trial).toMatchObject({ balance: 0n });
    // The one under way, its own, and one that may have begun since.
    expect(calls()).toBeLessThanOrEqual(3);
    await flood;
    // 2,001 transfers, 64 in each call.
    expect(calls()).toBe(32);
    pool.close();
  });

  test("share one trial where they are the same, with the same signature", async () => {
    const counted = createInterferingPool(chain.devnet, () => undefined);
    const simulator = createSimulator({ rpc: counted.pool, now: Date.now, maxConcurrent: 1 });
    const one = await transfer();
    const same = Array.from({ length: 2_000 }, () => simulator.simulate({ ...one }));
    const forged: Claim = { ...one, signature: `0x${"11".repeat(65)}` };
    const { authorization } = await transfer({ authorization: { nonce: one.authorization.nonce } });
    const changed: Claim = { ...one, authorization: { ...authorization, value: 1n } };
    const others = [simulator.simulate(forged), simulator.simulate(changed)];
    expect(simulator.countWaiting(one.id.payer, undefined)).toBe(3);
    const results = await Promise.all(same);
    expect(results.filter(({ isExact }) => isExact)).toHaveLength(2_000);
    expect(await Promise.all(others)).toMatchObject([
      { outcome: "reverted" },
      { outcome: "reverted" },
    ]);
    expect(counted.calls()).toBe(1);
  });

  test("share no trial that began before them, and each result is of its own moment", async () => {
    const { pool, calls, release } = createHeldPool();
    const simulator = createSimulator({ rpc: pool, now: Date.now });
    const one = await transfer();
    const early = simulator.simulate(one);
    await expect.poll(calls).toBe(1);
    const late = simulator.simulate(one);
    expect(simulator.countWaiting(one.id.payer, undefined)).toBe(1);
    release();
    await Promise.all([early, late]);
    expect(calls()).toBe(2);
    pool.close();
  });

  test("all fail where the trial that they share fails", async () => {
    const dead = createPool(chain.devnet, () => Promise.reject(new TypeError("fetch failed")));
    const simulator = createSimulator({ rpc: dead, now: Date.now });
    const one = await transfer();
    const trials = await Promise.allSettled(
      [one, one, one].map((each) => simulator.simulate(each)),
    );
    for (const trial of trials) {
      expect(trial).toMatchObject({ status: "rejected", reason: { kind: "unavailable" } });
    }
    dead.close();
  });
});

async function accountWithoutToken(address: Address): Promise<Address> {
  await chain.devnet.client.setCode({ address, bytecode: "0x620493e05ff3" });
  return address;
}

/** A clock that stands still, and the timers that were set by it. */
function createHeldClock() {
  const timers: { run: () => void; delayMs: number }[] = [];
  let time = 1_000;
  return {
    timers,
    pass(ms: number) {
      time += ms;
    },
    now: () => time,
    setTimer(run: () => void, delayMs: number) {
      const timer = { run, delayMs };
      timers.push(timer);
      return () => {
        timers.splice(timers.indexOf(timer), 1);
      };
    },
  };
}

describe("trials of a process that shares its ledger", () => {
  function createSpacedSimulator() {
    const { pool, calls, release } = createHeldPool();
    onTestFinished(() => pool.close());
    release();
    const clock = createHeldClock();
    const simulator = createSimulator({ rpc: pool, now: Date.now, clock, spacingMs: () => 80 });
    return { simulator, clock, calls };
  }

  test("leave at once after a while without one, and then gather", async () => {
    const { simulator, clock, calls } = createSpacedSimulator();
    await simulator.simulate(await transfer());
    expect(clock.timers).toEqual([]);
    clock.pass(10);
    const gathered = (await many(3)).map((each) => simulator.simulate(each));
    expect(clock.timers.map(({ delayMs }) => delayMs)).toEqual([70]);
    clock.pass(70);
    clock.timers[0]?.run();
    await Promise.all(gathered);
    expect(calls()).toBe(2);
    expect(clock.timers).toEqual([]);
    clock.pass(80);
    await simulator.simulate(await transfer());
    expect(calls()).toBe(3);
  });

  test("wait for no company where they are worth a request, or planned", async () => {
    const { simulator, clock, calls } = createSpacedSimulator();
    await simulator.simulate(await transfer());
    await Promise.all((await many(8)).map((each) => simulator.simulate(each)));
    const waiting = simulator.simulate(await transfer());
    await simulator.simulatePlanned(await transfer());
    await waiting;
    expect(calls()).toBe(3);
    expect(clock.timers).toEqual([]);
  });
});
