import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  type BlockWatcher,
  createBlockWatcher,
  createRpcPool,
  type RpcPool,
  systemClock,
} from "../index.ts";
import type { RpcPoolEvent } from "../rpc/rpc-pool.ts";

/** Longer than a test takes: a block seen earlier came by notification. */
const never = 600_000;

let devnet: Devnet;
let relay: Relay;
let pool: RpcPool;
let watcher: BlockWatcher;
let failures: RpcPoolEvent[];

beforeAll(async () => {
  devnet = await startDevnet();
});
afterAll(() => devnet.stop());
beforeEach(async () => {
  relay = await startRelay(Number(new URL(devnet.rpcUrl).port));
});
afterEach(async () => {
  watcher.close();
  pool.close();
  await relay.close();
});

interface Relay {
  url: string;
  connections(): number;
  /** Breaks all connections. */
  cut(): void;
  /** Accepts connections and messages, and forwards nothing. */
  mute(): void;
  close(): Promise<void>;
}

/** A TCP port in front of the node. */
async function startRelay(port: number): Promise<Relay> {
  const sockets = new Set<Socket>();
  let isMute = false;
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    const upstream = connect(port, "127.0.0.1");
    for (const each of [socket, upstream]) {
      sockets.add(each);
      each.on("error", () => undefined);
    }
    socket.on("data", (data) => upstream.write(data));
    upstream.on("data", (data) => isMute || socket.write(data));
    socket.on("close", () => upstream.destroy());
    upstream.on("close", () => socket.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/?key=s3cr3t-key`,
    connections: () => connections,
    cut,
    mute() {
      isMute = true;
    },
    async close() {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}

/** Watches, and waits for the subscription. */
async function watch(options: { pollIntervalMs: number; chainId?: number }) {
  failures = [];
  pool = createRpcPool({
    chainId: options.chainId ?? devnet.chainId,
    rpcUrls: [relay.url, devnet.rpcUrl],
    onEvent: (event) => failures.push(event),
  });
  watcher = createBlockWatcher({ pool, pollIntervalMs: options.pollIntervalMs });
  const unsubscribe = watcher.subscribe(() => undefined);
  await expect.poll(() => relay.connections()).toBe(1);
  await expect.poll(() => watcher.latest()).toBeDefined();
  return unsubscribe;
}

async function mineAndSee() {
  await devnet.mine();
  const { hash } = await devnet.client.getBlock();
  await expect.poll(() => watcher.latest()?.hash, { timeout: 20_000 }).toBe(hash);
}

describe("a block watcher with a WebSocket node", () => {
  it("is notified of blocks by the node, and reads them over HTTP", async () => {
    await watch({ pollIntervalMs: never });
    for (let block = 0; block < 3; block += 1) await mineAndSee();
    expect(watcher.status().endpoint).toBe(2);
  });

  it("subscribes again after a lost connection, and catches up", async () => {
    await watch({ pollIntervalMs: never });
    await mineAndSee();
    relay.cut();
    await expect.poll(() => failures).toMatchObject([{ type: "endpoint-failed", endpoint: 1 }]);
    expect(JSON.stringify(failures)).not.toContain("s3cr3t");
    await mineAndSee();
    expect(relay.connections()).toBe(2);
  });

  it("polls while the node sends nothing", async () => {
    await watch({ pollIntervalMs: 20 });
    await mineAndSee();
    relay.mute();
    await mineAndSee();
    await mineAndSee();
  });

  it("polls while the WebSocket is unreachable", async () => {
    await relay.close();
    relay = { ...relay, connections: () => 1, close: async () => undefined };
    await watch({ pollIntervalMs: 20 });
    await mineAndSee();
  });

  it("closes the connection with its last subscriber", async () => {
    const unsubscribe = await watch({ pollIntervalMs: never });
    await mineAndSee();
    unsubscribe();
    await devnet.mine();
    const again = watcher.subscribe(() => undefined);
    await expect.poll(() => relay.connections()).toBe(2);
    await mineAndSee();
    again();
  });

  it("ignores notifications of a node of another chain, and connects again later", async () => {
    failures = [];
    const later: (() => void)[] = [];
    pool = createRpcPool({
      chainId: 1,
      rpcUrls: [relay.url, devnet.rpcUrl],
      clock: {
        ...systemClock,
        setTimer(run, delayMs) {
          if (delayMs < never) return systemClock.setTimer(run, delayMs);
          later.push(run);
          return () => undefined;
        },
      },
      onEvent: (event) => failures.push(event),
    });
    watcher = createBlockWatcher({ pool, pollIntervalMs: never });
    pool.onNewHead(() => expect.unreachable());
    await expect
      .poll(() => failures)
      .toContainEqual({ type: "endpoint-wrong-chain", endpoint: 1, chainId: devnet.chainId });
    await expect.poll(() => later).toHaveLength(1);
    later[0]?.();
    await expect.poll(() => relay.connections()).toBe(2);
  });
});

it("refuses a pool with WebSocket endpoints only", () => {
  expect(() => createRpcPool({ chainId: 1, rpcUrls: ["wss://node.example/key"] })).toThrow(
    "rpcUrls names WebSockets only",
  );
});
