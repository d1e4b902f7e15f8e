import {
  type CustomTransport,
  createPublicClient,
  custom,
  defineChain,
  type PublicClient,
  RpcRequestError,
} from "viem";
import { getChainPreset } from "../chain-presets.ts";
import type { RpcCall } from "./rpc-envelope.ts";
import { RpcResponseError } from "./rpc-errors.ts";
import type { RpcRequester } from "./rpc-requester.ts";

/**
 * A viem transport over a pool, or over one endpoint of it: viem's actions with the pool's
 * failover. Node errors arrive as viem's own, so that reverts are decoded. `error.walk()` finds an
 * `RpcUnavailableError` as `cause`.
 */
export function viemTransport(rpc: RpcRequester): CustomTransport {
  async function request({ method, params }: RpcCall): Promise<unknown> {
    try {
      return await rpc.request({ method, ...(params && { params }) });
    } catch (error) {
      if (!(error instanceof RpcResponseError)) throw error;
      throw new RpcRequestError({
        // viem prints both; a call's parameters may hold a signature that is still valid.
        body: { method },
        url: `endpoint ${error.endpoint}`,
        error: { code: error.code, message: error.details, data: error.data },
      });
    }
  }
  // The pool has retried already, and knows which calls may be repeated.
  return custom({ request }, { retryCount: 0, name: "RPC pool" });
}

/** A viem `PublicClient` over a pool, or over one endpoint of it, with the chain's preset. */
export function createChainClient(rpc: RpcRequester): PublicClient {
  const preset = getChainPreset(rpc.chainId);
  const chain = defineChain({
    id: preset.chainId,
    name: preset.name,
    nativeCurrency: preset.nativeCurrency,
    // The transport chooses the endpoint.
    rpcUrls: { default: { http: [] } },
    contracts: preset.multicall3 ? { multicall3: { address: preset.multicall3 } } : {},
  });
  return createPublicClient({
    chain,
    transport: viemTransport(rpc),
    pollingInterval: preset.pollIntervalMs,
  });
}
