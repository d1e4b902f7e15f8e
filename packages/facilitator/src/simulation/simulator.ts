import {
  type Clock,
  RpcError,
  type RpcRequester,
  RpcResponseError,
  systemClock,
} from "@coinslot/chain";
import { type Address, CallerGoneError, FacilitatorError } from "@coinslot/protocol";
import type { Claim } from "../schemes/scheme.ts";
import type { SimulationResult } from "../schemes/simulation-result.ts";
import {
  decodeDeploylessAnswer,
  encodeDeploylessCall,
  findMaxTransfers,
  isDeploylessAnswer,
  noAnswer,
} from "./deployless-call.ts";
import { simulateSingly } from "./single-calls.ts";
import { createTrialQueue, type TrialCaller, type WaitingTrial } from "./trial-queue.ts";
import { senderFields, type TrialSender } from "./trial-sender.ts";
import { gatherMs } from "./trial-spacing.ts";

/**
 * Several times what a stablecoin transfer needs, so that a payer with code may check a signature.
 */
export const defaultCallGas = 300_000n;

export interface SimulatorOptions {
  rpc: RpcRequester;
  /** Asked before each request. Without it, trials come from the zero address at no price. */
  sender?: (() => TrialSender) | undefined;
  /**
   * Gas that each token call may use, the payer's own check of its signature included. Default
   * 300,000. The same limit should hold when it is settled.
   */
  callGas?: bigint | undefined;
  /** RPC requests at a time; transfers gather while that many are on their way. Default 4. */
  maxConcurrent?: number | undefined;
  clock?: Clock | undefined;
  /**
   * Least time between two RPC requests, asked for each verification. Many that have gathered leave
   * before. Default 0.
   */
  spacingMs?: (() => number) | undefined;
  /** Unix milliseconds. */
  now: () => number;
  /** Called with the block on which transfers were tried. */
  onBlock?: ((block: { number: bigint; timestamp: bigint }) => void) | undefined;
}

/** Tries signed transfers on a chain without making them. */
export interface Simulator {
  /**
   * Returns the outcome of a transfer, as if it were the only one. Callers in the same turn of the
   * event loop share one RPC request. While one is on its way, the next gather for a moment. No
   * transfer sees another's effects or uses its gas. Callers take turns, and so do a caller's
   * payers. Requests of a caller share one trial of the same transfer until an RPC request carries
   * it. A trial that began before the call is none for its moment.
   *
   * @throws CallerGoneError when the caller has left before an RPC request carries the transfer.
   * @throws FacilitatorError when the chain is unreachable, which proves nothing about the
   * transfer. Its `cause` is an `RpcResponseError` where a node was asked about this transfer
   * alone, and returned no result.
   */
  simulate(transfer: Claim, caller?: TrialCaller): Promise<SimulationResult>;
  /** `simulate` for many, in their order; by default one RPC request for each 64. */
  simulateAll(transfers: readonly Claim[]): Promise<SimulationResult[]>;
  /** `simulate` for a plan: it has half of each RPC request, and waits behind no verification. */
  simulatePlanned(transfer: Claim): Promise<SimulationResult>;
  /** Number of a payer's trials for one caller that no RPC request carries yet. */
  countWaiting(payer: Address, limitKey: string | undefined): number;
}

/** Time for which a node that refused something is not asked for it again. */
const restrictionMs = 60_000;

/**
 * Tries signed transfers by way of `eth_call`. Starts nothing by itself, and needs no closing.
 *
 * The queue is no batcher of `@coinslot/concurrency`. Bytes bound a request, and a number of
 * transfers that changes with the node's answers. A batcher has one constant `maxItems`.
 */
export function createSimulator(options: SimulatorOptions): Simulator {
  const { rpc, sender, callGas = defaultCallGas, maxConcurrent = 4, now } = options;
  const { clock = systemClock, spacingMs = noSpacing } = options;
  const maxTransfers = findMaxTransfers(callGas);
  const queue = createTrialQueue();
  let onTheirWay = 0;
  let isScheduled = false;
  /** Verifications that have come since the last RPC request left. */
  let gathered = 0;
  let cancelGathering: (() => void) | undefined;
  /** Time at which the last RPC request left. */
  let leftAt = Number.NEGATIVE_INFINITY;
  const node: AskedNode = {
    rpc,
    sender,
    callGas,
    now,
    maxTransfers,
    restriction: { maxTransfers, untilMs: 0 },
    pricelessUntilMs: 0,
  };

  function schedule(): void {
    if (isScheduled || queue.isEmpty() || onTheirWay >= maxConcurrent) return;
    const waitMs = gathered < worthARequest ? msToGather() : 0;
    if (waitMs > 0) cancelGathering ??= clock.setTimer(leave, waitMs);
    else leave();
  }

  /** Time for which verifications wait for company. */
  function msToGather(): number {
    const spacing = spacingMs();
    const leftMs = spacing > 0 ? leftAt + spacing - clock.now() : 0;
    return Math.max(onTheirWay > 0 ? gatherMs : 0, leftMs);
  }

  function leave(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(flush);
  }

  function flush(): void {
    isScheduled = false;
    gathered = 0;
    cancelGathering?.();
    cancelGathering = undefined;
    while (!queue.isEmpty() && onTheirWay < maxConcurrent) {
      const chunk = queue.take(transferLimit(node) || maxTransfers, dropTrial);
      if (chunk.length === 0) return;
      onTheirWay += 1;
      leftAt = clock.now();
      void deliver(chunk).finally(() => {
        onTheirWay -= 1;
        schedule();
      });
    }
  }

  async function deliver(chunk: readonly WaitingTrial[]): Promise<void> {
    try {
      const results = await ask(
        node,
        chunk.map(({ transfer }) => transfer),
      );
      const [tried] = results;
      if (tried && !(tried instanceof RpcError)) {
        options.onBlock?.({ number: tried.blockNumber, timestamp: tried.blockTimestamp });
      }
      for (const [index, trial] of chunk.entries()) {
        const result = results[index];
        if (result === undefined) reject(trial, unavailable());
        else if (result instanceof RpcError) reject(trial, unavailable(result));
        else resolve(trial, result);
      }
    } catch (error) {
      const fault = error instanceof RpcError ? unavailable(error) : error;
      for (const trial of chunk) reject(trial, fault);
    }
  }

  function wait(transfer: Claim, caller: TrialCaller | undefined): Promise<SimulationResult> {
    return new Promise((resolve, reject) => {
      queue.add({ transfer, caller, resolve, reject, next: undefined, twin: undefined });
      // A plan's trial waits for no company.
      gathered += caller === undefined ? worthARequest : 1;
      schedule();
    });
  }

  return {
    simulate: (transfer, caller = unknownCaller) => wait(transfer, caller),
    simulateAll: (transfers) =>
      Promise.all(transfers.map((transfer) => wait(transfer, unknownCaller))),
    simulatePlanned: (transfer) => wait(transfer, undefined),
    countWaiting: queue.countWaiting,
  };
}

/** So many verifications do not wait for an answer to others. */
const worthARequest = 8;
const noSpacing = () => 0;

const unknownCaller: TrialCaller = {};

/** Answers all callers of one trial. */
function resolve(trial: WaitingTrial, result: SimulationResult): void {
  for (let each: WaitingTrial | undefined = trial; each; each = each.twin) each.resolve(result);
}

function reject(trial: WaitingTrial, error: unknown): void {
  for (let each: WaitingTrial | undefined = trial; each; each = each.twin) each.reject(error);
}

function dropTrial(trial: WaitingTrial): void {
  reject(trial, new CallerGoneError());
}

/** A node, and the limits that its answers have shown. */
interface AskedNode extends Pick<SimulatorOptions, "rpc" | "sender" | "now"> {
  readonly callGas: bigint;
  readonly maxTransfers: number;
  /**
   * Number of transfers that the node has been found able to try in one request. 0 is single calls
   * only.
   */
  restriction: { maxTransfers: number; untilMs: number };
  /**
   * End of the time in which calls name no gas price, as the node found the relayer too poor.
   */
  pricelessUntilMs: number;
}

function transferLimit({ now, restriction, maxTransfers }: AskedNode): number {
  return now() < restriction.untilMs ? restriction.maxTransfers : maxTransfers;
}

function restrict(node: AskedNode, maxTransfers: number): void {
  node.restriction = { maxTransfers, untilMs: node.now() + restrictionMs };
}

async function ask(
  node: AskedNode,
  transfers: readonly Claim[],
): Promise<(SimulationResult | RpcError)[]> {
  if (transferLimit(node) === 0) return askSingly(node, transfers);
  const answered = await askDeployless(node, transfers);
  if (answered.length === transfers.length) return answered;
  if (answered.length > 0) {
    restrict(node, answered.length);
    return [...answered, ...(await ask(node, transfers.slice(answered.length)))];
  }
  if (transfers.length > 1 && (await askDeployless(node, transfers.slice(0, 1))).length > 0) {
    // It was too much at once. One half after the other: the second uses the first one's findings.
    const half = Math.ceil(transfers.length / 2);
    restrict(node, half);
    const results = await ask(node, transfers.slice(0, half));
    return [...results, ...(await ask(node, transfers.slice(half)))];
  }
  const results = await askSingly(node, transfers);
  restrict(node, 0);
  return results;
}

function askSingly(
  { rpc, callGas, sender }: AskedNode,
  transfers: readonly Claim[],
): Promise<(SimulationResult | RpcError)[]> {
  return simulateSingly({ rpc, transfers, callGas, from: sender?.().from });
}

/**
 * The results of as many transfers, from the first on, as the node's gas limit left room for. None
 * where the node refuses such a call, or does not know it.
 */
async function askDeployless(
  node: AskedNode,
  transfers: readonly Claim[],
): Promise<SimulationResult[]> {
  const { callGas, sender, now } = node;
  const call = encodeDeploylessCall(transfers, callGas);
  const { gasPrice, ...free } = senderFields(sender?.(), BigInt(call.gas));
  const isAnswer = (result: unknown) => isDeploylessAnswer(result, transfers.length);
  let answer: unknown;
  if (gasPrice !== undefined && now() >= node.pricelessUntilMs) {
    answer = await askOnce(node, { ...call, ...free, gasPrice }, isAnswer);
    if (answer === undefined) {
      answer = await askOnce(node, { ...call, ...free }, isAnswer);
      // It was the price: the relayer has less than was assumed, or the node computes otherwise.
      if (answer !== undefined) node.pricelessUntilMs = now() + restrictionMs;
    }
  } else {
    answer = await askOnce(node, { ...call, ...free }, isAnswer);
  }
  if (answer === undefined || answer === noAnswer) return [];
  return decodeDeploylessAnswer(answer, transfers.length);
}

/** `undefined` where the node refuses such a call. */
async function askOnce(
  { rpc }: AskedNode,
  call: object,
  isAnswer: (result: unknown) => boolean,
): Promise<unknown> {
  try {
    return await rpc.request({ method: "eth_call", params: [call, "latest"], isAnswer });
  } catch (error) {
    if (error instanceof RpcResponseError) return undefined;
    throw error;
  }
}

function unavailable(cause?: unknown): FacilitatorError {
  return new FacilitatorError("The chain cannot be read at the moment", {
    kind: "unavailable",
    cause,
  });
}
