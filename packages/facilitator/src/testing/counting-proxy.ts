import { type NodeProxy, startNodeProxy } from "./node-proxy.ts";

/** A node whose calls are counted, each of a batch by itself, as providers bill them. */
export interface CountingProxy extends NodeProxy {
  /** The calls since the last time, by method. */
  take(): ReadonlyMap<string, number>;
  /** When each call came, in milliseconds. */
  readonly times: readonly number[];
}

/** Starts a proxy in front of a node. */
export async function startCountingProxy(upstream: string): Promise<CountingProxy> {
  let counts = new Map<string, number>();
  const times: number[] = [];
  const proxy = await startNodeProxy(upstream, ({ method }, ask) => {
    counts.set(method, (counts.get(method) ?? 0) + 1);
    times.push(performance.now());
    return ask();
  });
  return {
    ...proxy,
    times,
    take() {
      const taken = counts;
      counts = new Map();
      return taken;
    },
  };
}

/** All calls together. */
export function sumOf(calls: ReadonlyMap<string, number>): number {
  return [...calls.values()].reduce((sum, count) => sum + count, 0);
}
