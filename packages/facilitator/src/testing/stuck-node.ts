import { type NodeProxy, startNodeProxy } from "./node-proxy.ts";

/** A node that has stood still. */
export interface StuckNode extends NodeProxy {
  /** Number of calls at its newest block. */
  calls(): number;
}

const tagged: ReadonlySet<string> = new Set([
  "eth_call",
  "eth_getBalance",
  "eth_getCode",
  "eth_getTransactionCount",
]);

/** Starts a node whose newest block is `head`, whatever its upstream has mined since. */
export async function startStuckNode(upstream: string, head: bigint): Promise<StuckNode> {
  const newest = `0x${head.toString(16)}`;
  let calls = 0;
  const proxy = await startNodeProxy(upstream, async (call, ask) => {
    const { method, params } = call;
    if (method === "eth_blockNumber") return { result: newest };
    const isOfNewest = params[1] === "latest";
    if (method === "eth_call" && isOfNewest) calls += 1;
    if (tagged.has(method) && isOfNewest) call.params = [params[0], newest, ...params.slice(2)];
    if (method === "eth_getBlockByNumber" && params[0] === "latest") {
      call.params = [newest, ...params.slice(1)];
    }
    return ask();
  });
  return { ...proxy, calls: () => calls };
}
