import { getWebSocketRpcClient } from "viem/utils";
import * as z from "zod";
import type { Clock } from "../clock.ts";
import type { EndpointEvent } from "../rpc/rpc-endpoint.ts";
import type { EndpointName } from "../rpc/rpc-errors.ts";
import { reportedChainId } from "../rpc/rpc-methods.ts";

/** Listeners for new heads, over any number of connections. */
export interface NewHeads {
  listen(listener: () => void): () => void;
  close(): void;
}

/** Keeps subscriptions to the new heads of some nodes while there is a listener. */
export function createNewHeads(options: {
  chainId: number;
  clock: Clock;
  sockets: readonly { href: string; name: EndpointName }[];
  emit: (event: EndpointEvent) => void;
}): NewHeads {
  const { chainId, clock, sockets, emit } = options;
  const listeners = new Set<() => void>();
  let ends: (() => void)[] = [];

  function onHead(): void {
    for (const listener of [...listeners]) listener();
  }

  function begin(): void {
    ends = sockets.map(({ href, name: { number: endpoint, label } }) =>
      subscribeNewHeads({
        chainId,
        href,
        clock,
        onHead,
        onLost(details) {
          const message = `${label}: ${details}`;
          emit({ type: "endpoint-failed", endpoint, kind: "connection", message });
        },
        onWrongChain: (actual) => emit({ type: "endpoint-wrong-chain", endpoint, chainId: actual }),
      }),
    );
  }

  function end(): void {
    for (const each of ends) each();
    ends = [];
  }

  return {
    listen(listener) {
      if (listeners.size === 0) begin();
      listeners.add(listener);
      return () => {
        if (listeners.delete(listener) && listeners.size === 0) end();
      };
    },
    close() {
      listeners.clear();
      end();
    },
  };
}

interface SubscriptionOptions {
  chainId: number;
  /** `wss://…`, with any keys it needs; it appears nowhere else. */
  href: string;
  clock: Clock;
  /**
   * Notification of a new head. Its content is not trusted: the listener reads the chain itself.
   */
  onHead: () => void;
  onLost: (details: string) => void;
  onWrongChain: (chainId: number) => void;
}

const minPauseMs = 1_000;
const maxPauseMs = 30_000;
/** A gateway may have sent one connection to a node of another chain. */
const wrongChainPauseMs = 600_000;
const answerMs = 10_000;

const answerSchema = z.object({ id: z.number(), result: z.unknown() });
const subscriptionSchema = z.string().min(1);

/**
 * Subscribes to a node's new heads over WebSocket (`eth_subscribe`). Reconnects with exponential
 * backoff: first after a second, then after twice as long each time. After a node of another chain
 * it waits for ten minutes. Returns the unsubscribe function.
 */
function subscribeNewHeads(options: SubscriptionOptions): () => void {
  const { chainId, href, clock, onHead, onLost, onWrongChain } = options;
  let isStopped = false;
  let pauseMs = minPauseMs;
  let cancelTimer: (() => void) | undefined;
  let hangUp: (() => void) | undefined;
  void connect();

  async function connect(): Promise<void> {
    const connection = await openConnection({ href, clock, onLost: lost }).catch(() => undefined);
    if (connection === undefined) return lost("it could not be reached");
    hangUp = connection.close;
    if (isStopped) return hangUp();
    try {
      const actual = reportedChainId(await connection.ask("eth_chainId", []));
      if (actual !== undefined && actual !== chainId) {
        onWrongChain(actual);
        return reconnectIn(wrongChainPauseMs);
      }
      subscriptionSchema.parse(await connection.ask("eth_subscribe", ["newHeads"], onHead));
      pauseMs = minPauseMs;
      // Blocks may have arrived while no connection stood.
      onHead();
    } catch {
      lost("it refuses subscriptions to new heads");
    }
  }

  /** Idempotent per connection: one loss schedules one reconnection. */
  function lost(details: string): void {
    if (!isStopped && cancelTimer === undefined) onLost(details);
    reconnectIn(pauseMs);
  }

  function reconnectIn(waitMs: number): void {
    hangUp?.();
    hangUp = undefined;
    if (isStopped || cancelTimer !== undefined) return;
    cancelTimer = clock.setTimer(() => {
      cancelTimer = undefined;
      void connect();
    }, waitMs);
    pauseMs = Math.min(2 * pauseMs, maxPauseMs);
  }

  return () => {
    isStopped = true;
    cancelTimer?.();
    hangUp?.();
  };
}

interface Connection {
  /**
   * Rejects where there is no result. `onMessage` receives the messages of the requested
   * subscription.
   */
  ask(method: string, params: unknown[], onMessage?: () => void): Promise<unknown>;
  close(): void;
}

/** One connection, without reconnection. Its errors may hold the URL. */
async function openConnection(options: {
  href: string;
  clock: Clock;
  onLost: (details: string) => void;
}): Promise<Connection> {
  const { href, clock, onLost } = options;
  const client = await getWebSocketRpcClient(href, { reconnect: false });
  let isClosed = false;
  client.socket.addEventListener("close", () => !isClosed && onLost("the connection was lost"));
  return {
    ask(method, params, onMessage) {
      return new Promise((resolve, reject) => {
        const cancel = clock.setTimer(reject, answerMs);
        client.request({
          body: { method, params },
          onError: reject,
          onResponse(message: unknown) {
            const answer = answerSchema.safeParse(message);
            if (!answer.success) return onMessage?.();
            cancel();
            resolve(answer.data.result);
          },
        });
      });
    },
    close() {
      isClosed = true;
      client.close();
    },
  };
}
