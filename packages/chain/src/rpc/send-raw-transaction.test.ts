import { type Devnet, startDevnet } from "@coinslot/devnet";
import { type Hex, keccak256, parseGwei } from "viem";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createRpcPool, type RpcPool, sendRawTransaction } from "../index.ts";
import { type FaultServer, startFaultServer } from "../testing/fault-server.ts";
import { answerError, answerMethod, answerStatus, loseAnswer } from "../testing/faults.ts";

let devnet: Devnet;
let first: FaultServer;
let second: FaultServer;
let pool: RpcPool;

beforeAll(async () => {
  devnet = await startDevnet();
});
afterAll(() => devnet.stop());
beforeEach(async () => {
  first = await startFaultServer(devnet.rpcUrl);
  second = await startFaultServer(devnet.rpcUrl);
});
afterEach(async () => {
  pool.close();
  await Promise.all([first.close(), second.close()]);
});

async function createPool(servers: FaultServer[]) {
  const { chainId } = devnet;
  const rpcUrls = servers.map((server) => server.url);
  pool = createRpcPool({ chainId, rpcUrls, timeoutMs: 5_000, patienceMs: 0 });
  await pool.ready();
}

async function signTransfer(nonceOffset = 0): Promise<Hex> {
  const { deployer } = devnet.accounts;
  const nonce = await devnet.client.getTransactionCount({ address: deployer.address });
  return deployer.signTransaction({
    chainId: devnet.chainId,
    type: "eip1559",
    to: deployer.address,
    nonce: nonce + nonceOffset,
    gas: 21_000n,
    maxFeePerGas: parseGwei("10"),
    maxPriorityFeePerGas: 1n,
  });
}

async function isMined(hash: Hex): Promise<boolean> {
  // A node answers before it has mined an accepted transaction.
  const receipt = await devnet.client.waitForTransactionReceipt({ hash });
  return receipt.status === "success";
}

describe("a broadcast", () => {
  it("is accepted by a node", async () => {
    await createPool([first]);
    const raw = await signTransfer();

    const outcome = await sendRawTransaction(pool, raw);

    expect(outcome).toEqual({ outcome: "accepted", hash: keccak256(raw), endpoint: 1 });
    expect(await isMined(outcome.hash)).toBe(true);
  });

  it("is rejected with the node's message", async () => {
    await createPool([first, second]);

    const outcome = await sendRawTransaction(pool, await signTransfer(-1));

    expect(outcome).toMatchObject({ outcome: "rejected", error: { code: -32003 } });
    expect(second.requests).not.toContainEqual(["eth_sendRawTransaction"]);
  });

  it("has the outcome unknown after a lost answer, though it may be mined", async () => {
    await createPool([first]);
    first.set(loseAnswer);

    const outcome = await sendRawTransaction(pool, await signTransfer());

    expect(outcome).toMatchObject({ outcome: "unknown", error: { maybeSent: true } });
    expect(await isMined(outcome.hash)).toBe(true);
  });

  it("goes to the next node too after a lost answer, which accepts it", async () => {
    await createPool([first, second]);
    first.set(({ response }) => void response.destroy());

    const outcome = await sendRawTransaction(pool, await signTransfer());

    expect(outcome).toMatchObject({ outcome: "accepted", endpoint: 2 });
    expect(await isMined(outcome.hash)).toBe(true);
  });

  it("stays unknown when one node may have accepted it and the next rejects it", async () => {
    await createPool([first, second]);
    first.set(loseAnswer);
    second.set(answerError(-32000, "nonce too low"));

    const outcome = await sendRawTransaction(pool, await signTransfer());

    expect(outcome).toMatchObject({ outcome: "unknown", error: { code: -32000 } });
    expect(await isMined(outcome.hash)).toBe(true);
  });

  it("has the outcome unknown when it is answered with another hash", async () => {
    await createPool([first]);
    first.set(answerMethod("eth_sendRawTransaction", `0x${"ab".repeat(32)}`));

    const outcome = await sendRawTransaction(pool, await signTransfer());

    expect(outcome).toMatchObject({ outcome: "unknown" });
  });

  it("has the outcome unsent when no node received it", async () => {
    await createPool([first, second]);
    first.set(answerStatus(429));
    second.set(answerStatus(401));

    const outcome = await sendRawTransaction(pool, await signTransfer());
    const whileResting = await sendRawTransaction(pool, await signTransfer());

    expect(outcome).toMatchObject({ outcome: "unsent" });
    expect(whileResting).toMatchObject({ outcome: "unsent", error: { maybeSent: false } });
  });
});
