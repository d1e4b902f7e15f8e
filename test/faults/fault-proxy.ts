import { listen } from "@coinslot/devnet";
import { type Hex, isHex } from "viem";
import { readRpcExchange } from "./rpc-exchange.ts";
import { answerHonestly, chooseFault, type RpcFaultName, rpcFaults } from "./rpc-faults.ts";
import type { Random } from "./seeded-random.ts";

/** A JSON-RPC server between processes and their node, which answers wrongly now and then. */
export interface FaultProxy {
  url: string;
  /** From now on, or no longer, some of the answers are faulty. */
  setFaulty(isFaulty: boolean): void;
  /** Number of HTTP requests, and of faulty answers by the fault. */
  counts(): { requests: number; faulty: number; faults: ReadonlyMap<RpcFaultName, number> };
  /** Every signed transaction sent, each once, in the order of arrival. */
  broadcasts(): readonly Hex[];
  close(): Promise<void>;
}

/** Starts a proxy in front of a node. Of its answers `faultShare` are faulty once it is set so. */
export async function startFaultProxy(options: {
  upstream: string;
  random: Random;
  faultShare: number;
}): Promise<FaultProxy> {
  const { upstream, random, faultShare } = options;
  const faults = new Map<RpcFaultName, number>();
  const broadcasts = new Set<Hex>();
  let requests = 0;
  let faulty = 0;
  let isFaulty = false;

  const server = await listen(async (request, response) => {
    try {
      const exchange = await readRpcExchange({ upstream, request, response });
      requests += 1;
      for (const { method, params } of exchange.calls) {
        if (method === "eth_sendRawTransaction" && isHex(params[0])) broadcasts.add(params[0]);
      }
      if (!isFaulty || !random.chance(faultShare)) return await answerHonestly(exchange);
      const fault = chooseFault(exchange, random);
      faulty += 1;
      faults.set(fault, (faults.get(fault) ?? 0) + 1);
      await rpcFaults[fault](exchange, random);
    } catch {
      // The client has left, or the node is gone: a proxy breaks the connection.
      response.destroy();
    }
  });

  return {
    url: server.url,
    setFaulty(next) {
      isFaulty = next;
    },
    counts: () => ({ requests, faulty, faults }),
    broadcasts: () => [...broadcasts],
    close: server.close,
  };
}
