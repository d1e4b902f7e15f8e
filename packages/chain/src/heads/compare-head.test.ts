import { type Devnet, startDevnet } from "@coinslot/devnet";
import { pad, toHex } from "viem";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { createRpcPool, RpcUnavailableError } from "../index.ts";
import { startFaultServer } from "../testing/fault-server.ts";
import type { BlockHeader } from "./block-header.ts";
import { compareHead, type KnownBlocks, readBranch } from "./compare-head.ts";
import { readHead, readHeaders } from "./read-headers.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet();
  await devnet.mine(20);
});
afterAll(() => devnet.stop());
beforeEach(() => devnet.mine(60));

async function connect() {
  const server = await startFaultServer(devnet.rpcUrl);
  const pool = createRpcPool({ chainId: devnet.chainId, rpcUrls: [server.url] });
  onTestFinished(async () => {
    pool.close();
    await server.close();
  });
  const [endpoint] = pool.endpoints;
  if (endpoint === undefined) throw new Error("There is no endpoint");
  await pool.ready();
  return { endpoint, requests: server.requests };
}

/** The newest blocks of the chain, oldest first. */
async function readKnown(count: number): Promise<[BlockHeader, ...BlockHeader[]]> {
  const { endpoint } = await connect();
  const { number } = await readHead(endpoint);
  const numbers = Array.from({ length: count }, (_, index) => number - BigInt(count - 1 - index));
  const [base, ...rest] = await readHeaders(endpoint, numbers);
  if (base === undefined) throw new Error("There is no block");
  return [base, ...rest];
}

let miners = 0;

/** Replaces the newest blocks by others, of another miner: empty ones may else be the same. */
async function reorganise(depth: number): Promise<void> {
  miners += 1;
  await devnet.client.setCoinbase({ address: pad(toHex(miners), { size: 20 }) });
  await devnet.reorg({ depth });
}

async function compare(known: KnownBlocks, change: { isOther?: boolean; maxBlocks?: number } = {}) {
  const { endpoint, requests } = await connect();
  const latest = await readHead(endpoint);
  const asked = requests.length;
  const options = { known, isOther: false, maxBlocks: 32, ...change };
  const result = await compareHead(endpoint, latest, options);
  return { endpoint, latest, result, requestCount: requests.length - asked };
}

describe("comparing known blocks with an endpoint's chain", () => {
  it("asks nothing more for a known head, and for the next block", async () => {
    const known = await readKnown(3);
    expect(await compare(known)).toMatchObject({ result: { type: "unchanged" }, requestCount: 0 });
    await devnet.mine();
    const { latest, result, requestCount } = await compare(known);
    expect(result).toEqual({ type: "advanced", blocks: [latest] });
    expect(requestCount).toBe(0);
  });

  it("reads missed blocks in one request, the oldest first, and no more than are wanted", async () => {
    const known = await readKnown(3);
    await devnet.mine(10);
    const all = await compare(known);
    const missed = await readKnown(10);
    expect(all).toMatchObject({ result: { type: "advanced", blocks: missed }, requestCount: 1 });
    const first = await compare(known, { maxBlocks: 4 });
    expect(first.result).toEqual({ type: "advanced", blocks: missed.slice(0, 4) });
  });

  it.each([1, 5, 9, 45])("finds the ancestor below %i replaced blocks", async (depth) => {
    const known = await readKnown(50);
    await reorganise(depth);
    await devnet.mine(2);
    const { endpoint, latest, result, requestCount } = await compare(known);
    const ancestor = known[known.length - 1 - depth];
    expect(result).toEqual({ type: "reorganised", ancestor });
    expect(requestCount).toBeLessThanOrEqual(4);
    if (ancestor === undefined) throw new Error("There is no ancestor");
    const branch = await readBranch(endpoint, ancestor, latest);
    expect(branch).toEqual(await readKnown(depth + 2));
  });

  it("finds no ancestor where the oldest known block was replaced, and says by which", async () => {
    const known = await readKnown(12);
    await reorganise(15);
    const [now] = await readKnown(12);
    expect((await compare(known)).result).toEqual({ type: "unconnected", found: now.hash });
  });

  it("accepts a fork from another endpoint only if it is longer", async () => {
    const known = await readKnown(5);
    await reorganise(2);
    const isOther = true;
    expect((await compare(known, { isOther })).result).toEqual({ type: "unchanged" });
    await devnet.mine();
    expect((await compare(known, { isOther })).result).toMatchObject({ type: "reorganised" });
  });

  it("rejects a head whose number contradicts its hash or its parent", async () => {
    const known = await readKnown(3);
    const { endpoint } = await connect();
    const [, , tip] = known;
    if (tip === undefined) throw new Error("There is no tip");
    const options = { known, isOther: false, maxBlocks: 32 };
    const wrong = compareHead(endpoint, { ...tip, number: tip.number + 7n }, options);
    await expect(wrong).rejects.toThrow(RpcUnavailableError);
    const hash = `0x${"ab".repeat(32)}` as const;
    const child = { ...tip, number: tip.number + 7n, hash, parentHash: tip.hash };
    await expect(compareHead(endpoint, child, options)).rejects.toThrow(`it calls block`);
  });

  it("rejects blocks that are not linked: the chain changed while it was read", async () => {
    const known = await readKnown(3);
    await devnet.mine(3);
    const { endpoint } = await connect();
    const latest = await readHead(endpoint);
    await reorganise(3);
    const options = { known, isOther: false, maxBlocks: 32 };
    await expect(compareHead(endpoint, latest, options)).rejects.toThrow("its chain changed");
  });
});
