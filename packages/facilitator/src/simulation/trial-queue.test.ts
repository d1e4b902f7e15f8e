import { httpPost } from "@coinslot/chain";
import { CallerGoneError, type Hex } from "@coinslot/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Claim } from "../schemes/scheme.ts";
import {
  createPool,
  startVerifyingDevnet,
  type VerifyingDevnet,
} from "../testing/verifying-devnet.ts";
import { createSimulator } from "./simulator.ts";
import { createTrialQueue } from "./trial-queue.ts";

let chain: VerifyingDevnet;
let payment: Claim;
beforeAll(async () => {
  chain = await startVerifyingDevnet();
  const { authorization, signature } = await chain.sign();
  const { network, token } = chain.devnet;
  const id = { network, asset: token, payer: authorization.from, nonce: authorization.nonce };
  payment = { kind: "eip3009", id, authorization, signature };
});
afterAll(() => chain.stop());

const attacker = { limitKey: "address 192.0.2.1" };
const buyer = { limitKey: "address 192.0.2.2" };

/** A transfer that the token refuses. Each payer and each nonce gives another one. */
function transferOf(payerIndex: number, nonceIndex = 0): Claim {
  const from: Hex = `0x${(payerIndex + 1).toString(16).padStart(40, "0")}`;
  const nonce: Hex = `0x${nonceIndex.toString(16).padStart(64, "0")}`;
  return {
    ...payment,
    id: { ...payment.id, payer: from, nonce },
    authorization: { ...payment.authorization, from, nonce },
  };
}

const listOf = <Item>(length: number, make: (index: number) => Item): Item[] =>
  Array.from({ length }, (_, index) => make(index));

/** A simulator whose node answers no `eth_call` until `release`. One call at a time. */
async function startBusySimulator() {
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
  const simulator = createSimulator({ rpc: pool, now: Date.now, maxConcurrent: 1 });
  const first = simulator.simulate(payment, buyer);
  await expect.poll(() => calls).toBe(1);
  return {
    simulator,
    /** Number of calls, the first one included. */
    calls: () => calls,
    async release() {
      release();
      await first;
    },
    close: () => pool.close(),
  };
}

describe("the trials that wait for a node", () => {
  it("are all made where one of their callers cannot say whether it has left", async () => {
    const { simulator, calls, release, close } = await startBusySimulator();
    const isGone = () => {
      throw new Error("no answer");
    };
    const before = simulator.simulate(transferOf(1), attacker);
    const failing = simulator.simulate(transferOf(2), {
      ...buyer,
      wait: { mayWait: () => true, isGone },
    });
    await release();
    const outcomes = (await Promise.all([before, failing])).map(({ outcome }) => outcome);
    expect(outcomes).toEqual(["reverted", "reverted"]);
    expect(calls()).toBe(2);
    close();
  });

  it("serve a caller in the next call, before the rest of another caller's 500 wallets", async () => {
    const { simulator, calls, release, close } = await startBusySimulator();
    const flood = listOf(500, (index) => simulator.simulate(transferOf(index), attacker));
    const waited = simulator.simulate(transferOf(1_000), buyer).then(calls);
    await release();
    expect(await waited).toBe(2);
    await Promise.all(flood);
    // 501 transfers, 64 in each call.
    expect(calls()).toBe(1 + 8);
    close();
  });

  it("serve a plan in the next call, before the rest of its payers' verifications", async () => {
    const { simulator, calls, release, close } = await startBusySimulator();
    const flood = listOf(500, (index) => simulator.simulate(transferOf(7, index), attacker));
    const others = listOf(200, (index) =>
      simulator.simulate(transferOf(index), { limitKey: `address ${index}` }),
    );
    const plan = listOf(30, (index) => simulator.simulatePlanned(transferOf(7, index)));
    const waited = Promise.all(plan).then(calls);
    await release();
    expect(await waited).toBe(2);
    await Promise.all([...flood, ...others]);
    close();
  });

  it("serve verifications in the same call as a plan of 500", async () => {
    const { simulator, calls, release, close } = await startBusySimulator();
    const plan = listOf(500, (index) => simulator.simulatePlanned(transferOf(index)));
    const waited = simulator.simulate(transferOf(1_000), buyer).then(calls);
    await release();
    expect(await waited).toBe(2);
    await Promise.all(plan);
    close();
  });

  it("ask a node nothing for callers that have left", async () => {
    const { simulator, calls, release, close } = await startBusySimulator();
    let isGone = false;
    const leaving = { ...attacker, wait: { mayWait: () => true, isGone: () => isGone } };
    const left = listOf(500, (index) => simulator.simulate(transferOf(index % 5, index), leaving));
    const ends = Promise.allSettled(left);
    const shared = simulator.simulate(transferOf(4, 499), attacker);
    const waited = simulator.simulate(transferOf(1_000), attacker).then(calls);
    isGone = true;
    await release();
    expect(await waited).toBe(2);
    // A caller that is still there gets the result of the trial that it shares.
    expect(await shared).toMatchObject({ outcome: "reverted" });
    expect(calls()).toBe(2);
    const errors = (await ends).map((end) => (end.status === "rejected" ? end.reason : undefined));
    expect(errors.filter((error) => error instanceof CallerGoneError)).toHaveLength(499);
    close();
  });

  it("ask a node nothing where all callers have left", async () => {
    const { simulator, calls, release, close } = await startBusySimulator();
    const leaving = { ...attacker, wait: { mayWait: () => true, isGone: () => true } };
    const left = simulator.simulate(transferOf(1), leaving);
    const end = expect(left).rejects.toBeInstanceOf(CallerGoneError);
    await release();
    await end;
    expect(calls()).toBe(1);
    close();
  });
});

describe("a queue of trials", () => {
  it("reads each transfer of a payer a fixed number of times, whatever their number", () => {
    const queue = createTrialQueue();
    let reads = 0;
    const count = 2_000;
    for (let index = 0; index < count; index += 1) {
      const { authorization, ...rest } = transferOf(7, index);
      const transfer: Claim = {
        ...rest,
        get authorization() {
          reads += 1;
          return authorization;
        },
      };
      queue.add({ transfer, caller: attacker, resolve() {}, reject() {} });
    }
    expect(queue.countWaiting(transferOf(7).id.payer, attacker.limitKey)).toBe(count);
    expect(reads).toBeLessThanOrEqual(10 * count);
  });
});
