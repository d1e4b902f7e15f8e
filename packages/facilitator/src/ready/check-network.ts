import {
  MULTICALL3_ADDRESS,
  RpcError,
  RpcNotReadyError,
  type RpcPool,
  RpcWrongChainError,
} from "@coinslot/chain";
import { FacilitatorError } from "@coinslot/protocol";
import type { NetworkConfiguration } from "../facilitator-configuration.ts";
import { checkRelayers } from "./check-relayers.ts";
import { checkTokens } from "./check-tokens.ts";
import { type Findings, joinFindings } from "./findings.ts";

/** What was found of a network. */
export interface NetworkReport extends Findings {
  /** Whether many payments can share a transaction. */
  hasMulticall3: boolean;
}

/**
 * Checks what only the chain can tell: the chain id of every endpoint, tokens, Multicall3, and whether
 * a relayer can pay. Never throws: a chain that cannot be asked is a problem like others.
 */
export async function checkNetwork(
  configuration: NetworkConfiguration,
  pool: RpcPool,
): Promise<NetworkReport> {
  const endpoints = await checkEndpoints(configuration, pool);
  if (endpoints.problems.length > 0) return { ...endpoints, hasMulticall3: false };
  const { network } = configuration;
  try {
    const [hasMulticall3, ...findings] = await Promise.all([
      isMulticall3There(pool),
      checkTokens(configuration, pool),
      checkRelayers(configuration, pool),
    ]);
    const slow = `There is no Multicall3 on ${network}: every payment takes a transaction of its own.`;
    const batches = { problems: [], warnings: hasMulticall3 ? [] : [slow] };
    return { ...joinFindings([endpoints, ...findings, batches]), hasMulticall3 };
  } catch (error) {
    if (!(error instanceof RpcError || error instanceof FacilitatorError)) throw error;
    const problems = [`${network} cannot be read: ${error.message}.`];
    return { problems, warnings: [], hasMulticall3: false };
  }
}

async function checkEndpoints({ network }: NetworkConfiguration, pool: RpcPool): Promise<Findings> {
  try {
    await pool.ready();
    return { problems: [], warnings: [] };
  } catch (error) {
    if (!(error instanceof RpcNotReadyError)) throw error;
    const problems = error.problems.map((problem) => {
      const advice =
        problem instanceof RpcWrongChainError
          ? "remove it from rpcUrls, or correct network"
          : "check its URL, and that it can be reached from here";
      return `${network}: ${problem.message}; ${advice}.`;
    });
    return { problems, warnings: [] };
  }
}

async function isMulticall3There(pool: RpcPool): Promise<boolean> {
  const code = await pool.request({
    method: "eth_getCode",
    params: [MULTICALL3_ADDRESS, "latest"],
  });
  return typeof code === "string" && code !== "0x";
}
