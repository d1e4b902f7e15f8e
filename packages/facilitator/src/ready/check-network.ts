import {
  type BlockWatcher,
  blockByNumber,
  type EndpointProblem,
  RpcError,
  RpcNotReadyError,
  type RpcPool,
  type RpcRequester,
  RpcWrongChainError,
} from "@coinslot/chain";
import { FacilitatorError, multicall3Address } from "@coinslot/protocol";
import * as z from "zod";
import type { NetworkConfiguration } from "../configuration/facilitator-configuration.ts";
import { checkByEach } from "./check-by-each.ts";
import { checkChannels, type NeededEscrow } from "./check-channels.ts";
import { checkRelayers } from "./check-relayers.ts";
import { checkTokens } from "./check-tokens.ts";
import { type Findings, joinFindings } from "./findings.ts";

/** Findings about a network. */
export interface NetworkReport extends Findings {
  /** True if many payments can share a transaction. */
  hasMulticall3: boolean;
  blockGasLimit: bigint;
  /** The chain, or an endpoint, could not be read: asked again, it may have no problem. */
  isTransient: boolean;
}

/**
 * Checks that need the chain: the chain id of every endpoint, tokens, Multicall3, and whether a
 * relayer can pay, contracts of channels. Lets the watcher see its first block. Never throws: an
 * unreachable chain is a problem like others.
 */
export async function checkNetwork(
  configuration: NetworkConfiguration,
  {
    pool,
    watcher,
    escrows,
  }: { pool: RpcPool; watcher: BlockWatcher; escrows: readonly NeededEscrow[] },
): Promise<NetworkReport> {
  const unread = { warnings: [], hasMulticall3: false, blockGasLimit: 0n };
  const { network } = configuration;
  try {
    await pool.ready();
  } catch (error) {
    if (!(error instanceof RpcNotReadyError)) throw error;
    const problems = error.problems.map((problem) => `${network}: ${adviceOn(problem)}.`);
    return { ...unread, problems, isTransient: error.retryable };
  }
  try {
    const [hasMulticall3, blockGasLimit, , ...findings] = await Promise.all([
      isMulticall3There(pool),
      readBlockGasLimit(pool),
      watcher.refresh(),
      checkByEach(pool, (rpc) => checkTokens(configuration, rpc)),
      checkByEach(pool, (rpc) => checkRelayers(configuration, rpc)),
      checkByEach(pool, (rpc) => checkChannels(network, escrows, rpc)),
    ]);
    const slow = `${network} has no Multicall3: every payment takes a transaction of its own.`;
    const batches = { problems: [], warnings: hasMulticall3 ? [] : [slow] };
    const found = joinFindings([...findings, batches]);
    const failed = findings.filter(({ problems }) => problems.length > 0);
    const isTransient = failed.length > 0 && failed.every((each) => each.isTransient);
    return { ...found, hasMulticall3, blockGasLimit, isTransient };
  } catch (error) {
    if (!(error instanceof RpcError || error instanceof FacilitatorError)) throw error;
    const problems = [`${network} cannot be read: ${error.message}.`];
    return { ...unread, problems, isTransient: true };
  }
}

function adviceOn(problem: EndpointProblem): string {
  const advice =
    problem instanceof RpcWrongChainError
      ? "remove it from rpcUrls, or correct network"
      : "check its URL, and that it can be reached from here";
  return `${problem.message}; ${advice}`;
}

const codeSchema = z.string().regex(/^0x([0-9a-f]{2})*$/i);

async function isMulticall3There(rpc: RpcRequester): Promise<boolean> {
  const params = [multicall3Address, "latest"];
  const code = codeSchema.safeParse(await rpc.request({ method: "eth_getCode", params }));
  if (!code.success) throw badAnswer();
  return code.data !== "0x";
}

const blockSchema = z.object({ gasLimit: z.string().regex(/^0x[0-9a-f]{1,16}$/i) });

async function readBlockGasLimit(rpc: RpcRequester): Promise<bigint> {
  const block = blockSchema.safeParse(await rpc.request(blockByNumber("latest")));
  if (!block.success) throw badAnswer();
  return BigInt(block.data.gasLimit);
}

function badAnswer(): FacilitatorError {
  return new FacilitatorError("The chain returned a malformed answer", { kind: "bad_response" });
}
