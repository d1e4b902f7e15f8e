import { type Devnet, startDevnet } from "@coinslot/devnet";
import { encodeFunctionData, erc20Abi } from "viem";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type CallBatcher, createCallBatcher, createRpcPool, type RpcPool } from "../index.ts";
import { type FaultServer, honest, startFaultServer } from "../testing/fault-server.ts";
import { answerStatus, limitBatch } from "../testing/faults.ts";

let devnet: Devnet;
let server: FaultServer;
let pool: RpcPool;
let batcher: CallBatcher;

beforeAll(async () => {
  devnet = await startDevnet();
});
afterAll(() => devnet.stop());
beforeEach(async () => {
  server = await startFaultServer(devnet.rpcUrl);
  pool = createRpcPool({ chainId: devnet.chainId, rpcUrls: [server.url], patienceMs: 0 });
  await pool.ready();
  batcher = createCallBatcher({ rpc: pool, maxBatchSize: 10, maxConcurrent: 2 });
});
afterEach(async () => {
  pool.close();
  await server.close();
});

function balanceCall() {
  const { address } = devnet.accounts.deployer;
  const data = encodeFunctionData({ abi: erc20Abi, functionName: "balanceOf", args: [address] });
  return { method: "eth_call", params: [{ to: devnet.token, data }, "latest"] };
}

/** Reverts: the deployer has given no allowance. */
function revertingCall() {
  const { address } = devnet.accounts.deployer;
  const args = [address, address, 1n] as const;
  const data = encodeFunctionData({ abi: erc20Abi, functionName: "transferFrom", args });
  return { method: "eth_call", params: [{ to: devnet.token, data }, "latest"] };
}

describe("a call batcher", () => {
  it("sends the calls of one turn in one HTTP request", async () => {
    const asked = server.requests.length;

    const results = await Promise.all(
      Array.from({ length: 8 }, () => batcher.request(balanceCall())),
    );

    expect(server.requests.slice(asked)).toEqual([Array.from({ length: 8 }, () => "eth_call")]);
    expect(new Set(results)).toEqual(new Set([`0x${"0".repeat(64)}`]));
  });

  it("isolates one caller's failure from the others", async () => {
    const outcomes = await Promise.allSettled([
      batcher.request(balanceCall()),
      batcher.request(revertingCall()),
      batcher.request(balanceCall()),
    ]);

    expect(outcomes).toMatchObject([
      { status: "fulfilled" },
      { status: "rejected", reason: { name: "RpcResponseError", code: 3 } },
      { status: "fulfilled" },
    ]);
  });

  it("keeps to its maximum size, and gathers calls while requests are in flight", async () => {
    const asked = server.requests.length;
    const sizes: number[] = [];
    let now = 0;
    let most = 0;
    server.set(async (exchange) => {
      sizes.push(exchange.calls.length);
      now += 1;
      most = Math.max(most, now);
      await honest(exchange);
      now -= 1;
    });

    await Promise.all(Array.from({ length: 35 }, () => batcher.request(balanceCall())));

    expect(server.requests.length - asked).toBe(4);
    expect(sizes.sort((a, b) => a - b)).toEqual([5, 10, 10, 10]);
    expect(most).toBeLessThanOrEqual(2);
  });

  it("serves other calls while one waits for a future block", async () => {
    const minBlock = (await devnet.client.getBlockNumber()) + 100n;

    const [impossible, possible] = await Promise.allSettled([
      batcher.request(balanceCall(), { minBlock }),
      batcher.request(balanceCall()),
    ]);

    expect(impossible).toMatchObject({ reason: { failures: [{ kind: "behind" }] } });
    expect(possible).toMatchObject({ status: "fulfilled" });
  });

  it("works with a server without batch support", async () => {
    server.set(limitBatch(1));
    const calls = [batcher.request(balanceCall()), batcher.request(balanceCall())];
    expect(await Promise.all(calls)).toHaveLength(2);
  });

  it("reports an outage to all callers, and works after it", async () => {
    server.set(answerStatus(500));
    const calls = [batcher.request(balanceCall()), batcher.request(balanceCall())];
    for (const outcome of await Promise.allSettled(calls))
      expect(outcome).toMatchObject({ reason: { name: "RpcUnavailableError" } });

    server.set(honest);
    expect(await batcher.request(balanceCall())).toMatch(/^0x/);
  });
});
