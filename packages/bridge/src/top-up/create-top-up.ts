import { systemClock } from "@coinslot/chain";
import { createKeyedMutex } from "@coinslot/concurrency";
import { isAddressEqual } from "viem";
import { parseEvmAddress } from "../addresses/evm-address.ts";
import { BridgeError } from "../bridge-error.ts";
import type { EvmBridgeChain } from "../chains/bridge-chain.ts";
import type { Bridge } from "../create-bridge.ts";
import { createTransferMemory } from "../send/transfer-memory.ts";
import { checkWait } from "../track/track-options.ts";
import type { FundsNeed, FundsRequest } from "./funds-request.ts";
import { serveNeed, type TargetNeed } from "./serve-need.ts";
import type { TopUpContext, TopUpOptions } from "./top-up-context.ts";

/**
 * Creates the `topUp` of a fetch that pays (`createPayingFetch` of @coinslot/client). When no
 * offered network has the funds, it quotes, asks, bridges and waits. It resolves to whether the
 * tokens are there. `false`: the bridge can serve none of the needs, or `ask` declined.
 *
 * A transfer is stored before it is sent, until it has arrived or certainly never will. While one
 * may be under way to a payer on a chain, no other is sent there. It is awaited, and sent again as
 * it is if no node has it. So neither a crash nor a timeout makes it bridge twice, and concurrent
 * callers share the arriving tokens.
 *
 * The function it returns throws BridgeError when a transfer fails, or does not arrive in time.
 *
 * @example
 * ```ts
 * const topUp = createTopUp({
 *   bridge,
 *   token: "0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9",
 *   file: "top-up.json", // remembers the transfer under way over restarts
 *   ask: ({ quote }) => confirm(`Bridge for ${quote.fee + quote.bridgeFee}?`),
 * });
 * const pay = createPayingFetch({ account, rpcUrls, topUp });
 * ```
 *
 * @throws BridgeError `invalid_configuration`
 */
export function createTopUp(options: TopUpOptions): (request: FundsRequest) => Promise<boolean> {
  checkOptions(options);
  const { confirmations = 1, timeoutMs = 600_000, pollIntervalMs = 2_000 } = options;
  const context: TopUpContext = {
    ...options,
    minAmount: options.minAmount ?? 0n,
    confirmations,
    timeoutMs,
    pollIntervalMs,
    clock: options.clock ?? systemClock,
    memory: createTransferMemory(options.file),
    routeMutex: createKeyedMutex(),
    arrivedIn: new Map(),
  };
  return (request) => topUp(context, request);
}

async function topUp(
  context: TopUpContext,
  { payer, needs, signal }: FundsRequest,
): Promise<boolean> {
  const limits = { payer, signal, deadline: context.clock.now() + context.timeoutMs };
  for (const targetNeed of await underWayFirst(context, payer, needs)) {
    const route = `${targetNeed.target.key} ${payer.toLowerCase()}`;
    const serve = () => serveNeed(context, targetNeed, limits);
    const isThere = await context.routeMutex.run(route, serve, signal);
    if (isThere !== undefined) return isThere;
  }
  return false;
}

/**
 * The needs on chains that the bridge knows. Transfers under way are awaited before more is sent.
 */
async function underWayFirst(
  { bridge, memory }: TopUpContext,
  payer: string,
  needs: readonly FundsNeed[],
): Promise<TargetNeed[]> {
  const found = await Promise.all(
    needs.map(async (need) => {
      const target = findTarget(bridge, need);
      if (target === undefined) return undefined;
      const underWay = await memory.find({ targetChain: target.key, recipient: payer });
      return { need, target, rank: underWay === undefined ? 1 : 0 };
    }),
  );
  return found.filter((each) => each !== undefined).sort((a, b) => a.rank - b.rank);
}

function checkOptions({ minAmount, ...options }: TopUpOptions): void {
  checkWait("createTopUp", options);
  if (minAmount === undefined || (typeof minAmount === "bigint" && minAmount >= 0n)) return;
  const text = "createTopUp: minAmount is not a bigint of zero or more";
  throw new BridgeError("invalid_configuration", text);
}

/** The chain of a need, if the token that arrives there is the required one. */
function findTarget(bridge: Bridge, need: FundsNeed): EvmBridgeChain | undefined {
  const asset = parseEvmAddress(need.asset);
  if (asset instanceof Error) return undefined;
  for (const chain of bridge.supportedChains()) {
    if (chain.type !== "evm" || need.network !== `eip155:${chain.chainId}`) continue;
    if (chain.token !== undefined && isAddressEqual(chain.token, asset)) return chain;
  }
  return undefined;
}
