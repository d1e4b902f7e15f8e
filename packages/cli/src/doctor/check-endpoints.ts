import { createRpcPool, RpcNotReadyError, RpcWrongChainError } from "@coinslot/chain";
import type { ConfiguredNetwork } from "@coinslot/hosting/environment";
import type { Check } from "./check.ts";

const timeoutMs = 5_000;

/** Checks that every endpoint answers, and serves the right chain. Returns the usable ones, too. */
export async function checkEndpoints({
  chainId,
  rpcUrls,
  name,
  network,
}: ConfiguredNetwork): Promise<{ checks: Check[]; usable: string[] }> {
  const asked = await Promise.all(
    rpcUrls.map(async (url, index) => {
      const place = rpcUrls.length === 1 ? "The endpoint" : `Endpoint ${index + 1}`;
      const pool = createRpcPool({ chainId, rpcUrls: [url], timeoutMs, patienceMs: 0 });
      const startedAt = performance.now();
      try {
        await pool.ready();
        const tookMs = Math.round(performance.now() - startedAt);
        const found = `${place} serves chain ${chainId}, and answered in ${tookMs} ms`;
        return { url, status: "ok" as const, found };
      } catch (error) {
        if (!(error instanceof RpcNotReadyError)) throw error;
        const [problem] = error.problems;
        if (problem instanceof RpcWrongChainError) {
          const found = `${place} serves chain ${problem.actualChainId}: correct its URL, or ${network}.`;
          return { status: "broken" as const, found };
        }
        const details = problem?.details ?? "it does not answer";
        return {
          status: "away" as const,
          found: `${place} cannot be used (${details}): check its URL.`,
        };
      } finally {
        pool.close();
      }
    }),
  );
  const usable = asked.flatMap(({ status, url }) => (status === "ok" && url ? [url] : []));
  // An absent endpoint is no harm while another answers. One of another chain is a wrong setting.
  const checks = asked.map(({ status, found }): Check => {
    const away = usable.length > 0 ? "warning" : "broken";
    return { topic: "rpc", about: name, status: status === "away" ? away : status, found };
  });
  return { checks, usable };
}
