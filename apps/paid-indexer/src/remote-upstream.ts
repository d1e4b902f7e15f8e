import { ApiError, ApiUnreachableError, createIndexerClient } from "@coinslot/indexer";
import { ConfigurationError } from "@coinslot/protocol";
import { forwardTo, keyRefused, type RemoteApi, unreachable } from "./forward-requests.ts";
import type { Upstream } from "./upstream.ts";

const checkTimeoutMs = 10_000;

/** A remote indexing API, which knows us by a key. */
export function createRemoteUpstream(api: RemoteApi): Upstream {
  const client = createIndexerClient({ ...api, timeoutMs: checkTimeoutMs });
  return {
    handle: forwardTo(api),
    free: {
      getHealth: () => client.getHealth().catch(blameNobody),
      listChains: () => client.listChains().catch(blameNobody),
    },
    // Every key may ask ten times in an hour.
    healthFreshMs: 360_000,

    async start() {
      try {
        await client.listChains();
      } catch (cause) {
        throw new ConfigurationError("The indexing service", [describeFault(cause)], { cause });
      }
    },

    isReady: async () => true,
    readMetrics: async () => "",
    close: async () => undefined,
  };
}

/** Hides the API's answer about our key from a caller without one. */
function blameNobody(error: unknown): never {
  if (error instanceof ApiUnreachableError) throw unreachable(error);
  if (error instanceof ApiError && isRefusalOfKey(error)) throw keyRefused(error.status);
  throw error;
}

function isRefusalOfKey({ status }: ApiError): boolean {
  return status === 401 || status === 403;
}

function describeFault(error: unknown): string {
  if (error instanceof ApiError && isRefusalOfKey(error)) {
    return "INDEXER_API_KEY: the indexing service refuses it. Make a key there, with raised limits, and set it.";
  }
  const reason = error instanceof Error ? error.message : String(error);
  return `INDEXER_URL: ${reason} Start the service, or correct the URL.`;
}
