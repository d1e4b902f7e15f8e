import { inspect } from "node:util";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { createRpcPool, type RpcPool, type RpcPoolEvent, type RpcPoolOptions } from "../index.ts";
import { type FaultServer, secret, startFaultServer } from "./fault-server.ts";

export const chainId = 9745;
export const readHead = { method: "eth_blockNumber" };

/** A pool on two endpoints of one chain, which misbehave on command. */
export interface PoolScene {
  devnet: Devnet;
  first: FaultServer;
  second: FaultServer;
  pool: RpcPool;
  /** The pool's events. */
  events: RpcPoolEvent[];
}

type Change = Partial<Omit<RpcPoolOptions, "chainId" | "rpcUrls">> & {
  /** Leaves the second endpoint out. */
  onlyFirst?: boolean;
};

/**
 * Registers the hooks for a test file that asks a pool. The pool's events are searched for its
 * endpoints' URLs after
 * each test.
 *
 * @returns opens the pool; to be called once within a test
 */
export function usePoolScene(): (change?: Change) => PoolScene {
  let devnet: Devnet;
  let first: FaultServer;
  let second: FaultServer;
  let scene: PoolScene | undefined;

  beforeAll(async () => {
    devnet = await startDevnet({ chainId });
  });
  afterAll(() => devnet.stop());
  beforeEach(async () => {
    first = await startFaultServer(devnet.rpcUrl);
    second = await startFaultServer(devnet.rpcUrl);
  });
  afterEach(async () => {
    scene?.pool.close();
    await Promise.all([first.close(), second.close()]);
    if (scene) expectNoSecret(scene.events, scene.pool.status());
    scene = undefined;
  });

  return ({ onlyFirst = false, ...options } = {}) => {
    const events: RpcPoolEvent[] = [];
    const pool = createRpcPool({
      chainId,
      rpcUrls: onlyFirst ? [first.url] : [first.url, second.url],
      timeoutMs: 5_000,
      patienceMs: 0,
      restMs: 100,
      maxResponseBytes: 1_000_000,
      onEvent: (event) => events.push(event),
      ...options,
    });
    scene = { devnet, first, second, pool, events };
    return scene;
  };
}

/** Nothing that leaves the pool may show an endpoint's URL or any part of it. */
function expectNoSecret(...things: unknown[]): void {
  const text = inspect(things, { depth: Number.POSITIVE_INFINITY, showHidden: true });
  expect(text).not.toContain(secret);
  expect(text).not.toContain("127.0.0.1");
  expect(text).not.toMatch(/https?:\/\//);
}

/** The rejection of a request, without any URL. */
export async function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  const error = await promise.then(
    () => expect.unreachable("it should have been rejected"),
    (reason: unknown) => reason,
  );
  expectNoSecret(error);
  return error;
}

/** @param endpoint counted from 1, as the pool does */
export function stateOf(pool: RpcPool, endpoint: number) {
  return pool.status()[endpoint - 1]?.state;
}
