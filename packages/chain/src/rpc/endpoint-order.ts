import { type Clock, sleep } from "../clock.ts";
import { type BlockHeader, blockByNumber, parseBlockHeader } from "../heads/block-header.ts";
import { withLinkedAbort } from "./linked-abort.ts";
import type { RpcEndpoint } from "./rpc-endpoint.ts";
import { type EndpointProblem, RpcEndpointError, RpcWrongChainError } from "./rpc-errors.ts";

export interface EndpointWish {
  minBlock?: bigint;
  signal?: AbortSignal;
}

/**
 * The endpoints to try for one request. `passOver` receives the reason why one was skipped.
 * `all-tried` follows the last healthy one: after it come those on trial, and then all of them
 * again.
 */
export type EndpointSource = (
  wish: EndpointWish,
  passOver: (problem: EndpointProblem) => void,
) => AsyncIterable<RpcEndpoint | "all-tried">;

export interface EndpointOrder {
  /** Usable endpoints, the best first, repeated until `patienceMs` is over. */
  candidates: EndpointSource;
  /** The given endpoint, if it can be used now. */
  only(endpoint: RpcEndpoint): EndpointSource;
  /**
   * Asks every endpoint for its newest block; lagging ones then come last. One lags that is behind
   * another's head, and whose own block is old: a head that is far ahead may be made up. So is one
   * that the chain cannot have reached since that block. One also lags that is far behind the heads
   * of two others: its time may be made up. Resolves to the heads of those that answer. Rejects
   * only on close.
   */
  compareHeads(): Promise<ComparedHead[]>;
  isLagging(endpoint: RpcEndpoint): boolean;
  /** Time until an endpoint may be used again. */
  soonestMs(): number;
}

const retryPauseMs = 100;
/** No known chain has slower blocks. */
const slowestBlockMs = 12_000;
/** A block may be late, and clocks differ. */
const lateMs = 5_000;
/** The pace of a chain whose blocks' time is not known, where more is too much. */
const fastestBlockMs = 100;
/** A gap of so many blocks tells nothing where a block's time is not known. */
const farBlocks = 64;

export interface EndpointOrderOptions {
  endpoints: readonly RpcEndpoint[];
  timeoutMs: number;
  patienceMs: number;
  maxLagBlocks: number;
  /** Of the chain; `undefined`: not known. */
  blockTimeMs: number | undefined;
  headCheckMs: number;
  clock: Clock;
  /** Unix milliseconds. */
  now: () => number;
  closing: AbortSignal;
}

/** The options of an order, and its record of the endpoints' heads. */
interface OrderContext extends EndpointOrderOptions {
  lagging: ReadonlySet<RpcEndpoint>;
  headsComparedAt: number;
}

/** An endpoint's newest block at a comparison of heads. */
export interface ComparedHead {
  endpoint: number;
  number: bigint;
  isLagging: boolean;
  /** True if its own newest block is, by its time. */
  isOld: boolean;
}

/** Decides which endpoint is asked next. */
export function createEndpointOrder(options: EndpointOrderOptions): EndpointOrder {
  const context: OrderContext = {
    ...options,
    lagging: new Set(),
    headsComparedAt: options.clock.now(),
  };
  return {
    candidates: (wish, passOver) => candidates(context, wish, passOver),
    only: (endpoint) => (wish, passOver) => usable(context, [endpoint], wish, passOver),
    compareHeads: () => compareHeads(context),
    isLagging: (endpoint) => context.lagging.has(endpoint),
    soonestMs: () => soonestMs(context),
  };
}

async function* candidates(
  context: OrderContext,
  wish: EndpointWish,
  passOver: (problem: EndpointProblem) => void,
): AsyncGenerator<RpcEndpoint | "all-tried", void, void> {
  const { endpoints, clock, closing } = context;
  const sources = wish.signal ? [wish.signal, closing] : [closing];
  const deadline = clock.now() + context.patienceMs;
  compareHeadsIfDue(context);
  for (;;) {
    // A trial runs beside the request, so that no request waits for it while others are healthy.
    const onTrial = endpoints.filter((endpoint) => endpoint.onTrial());
    for (const endpoint of onTrial) void endpoint.check();
    const healthy = endpoints.filter((endpoint) => !onTrial.includes(endpoint));
    const { lagging } = context;
    const inOrder = [
      ...healthy.filter((endpoint) => !lagging.has(endpoint)),
      ...healthy.filter((endpoint) => lagging.has(endpoint)),
    ];
    yield* usable(context, inOrder, wish, passOver);
    yield "all-tried";
    yield* usable(context, onTrial, wish, passOver);

    const pauseMs = Math.max(retryPauseMs, soonestMs(context));
    if (clock.now() + pauseMs > deadline) return;
    await withLinkedAbort(sources, ({ signal }) => sleep(clock, pauseMs, signal));
  }
}

async function* usable(
  context: OrderContext,
  endpoints: readonly RpcEndpoint[],
  wish: EndpointWish,
  passOver: (problem: EndpointProblem) => void,
) {
  for (const endpoint of endpoints) {
    const obstacle = await findObstacle(context, endpoint, wish);
    if (obstacle) passOver(obstacle);
    else yield endpoint;
  }
}

/** The reason why the endpoint cannot be used for this request now; undefined: none. */
async function findObstacle(
  { timeoutMs, closing }: OrderContext,
  endpoint: RpcEndpoint,
  { minBlock, signal }: EndpointWish,
): Promise<EndpointProblem | undefined> {
  if (endpoint.state() === "unchecked")
    await withLinkedAbort(signal ? [signal, closing] : [closing], () => endpoint.check());
  if (endpoint.state() !== "ready") return notReady(endpoint);
  if (minBlock === undefined) return undefined;
  if ((endpoint.head() ?? -1n) < minBlock)
    await endpoint.send([{ method: "eth_blockNumber" }], { timeoutMs, signal });
  const head = endpoint.head();
  if (head !== undefined && head >= minBlock) return undefined;
  const details = `its head is ${head ?? "unknown"}, below the requested block ${minBlock}`;
  return new RpcEndpointError({ name: endpoint.name, kind: "behind", details, maybeSent: false });
}

function soonestMs({ endpoints }: OrderContext): number {
  return Math.min(...endpoints.map((endpoint) => endpoint.restMs()));
}

function compareHeadsIfDue(context: OrderContext): void {
  const { endpoints, clock, headsComparedAt, headCheckMs } = context;
  if (endpoints.length === 1 || clock.now() - headsComparedAt < headCheckMs) return;
  compareHeads(context).catch(() => undefined);
}

async function compareHeads(context: OrderContext): Promise<ComparedHead[]> {
  const { endpoints, timeoutMs, clock, maxLagBlocks, blockTimeMs } = context;
  context.headsComparedAt = clock.now();
  const heads = await Promise.all(
    endpoints.map(async (endpoint) => {
      if (await findObstacle(context, endpoint, {})) return undefined;
      const call = blockByNumber("latest");
      const [outcome] = await endpoint.send([call], { timeoutMs, signal: undefined });
      return outcome?.ok ? parseBlockHeader(outcome.result) : undefined;
    }),
  );
  const numbers = heads.flatMap((head) => head?.number ?? []).sort((a, b) => (a > b ? -1 : 1));
  // With two, the lower one may be the true one.
  const shared = numbers.length > 2 ? numbers[1] : undefined;
  // A node that has its blocks late is behind by those of a few seconds.
  const lateBlocks =
    blockTimeMs === undefined ? farBlocks : maxLagBlocks + Math.ceil(lateMs / blockTimeMs);
  const maxAgeMs = maxLagBlocks * (blockTimeMs ?? slowestBlockMs) + lateMs;
  const ageOf = ({ timestamp }: BlockHeader) => context.now() - Number(timestamp) * 1_000;
  const isOld = (head: BlockHeader) => ageOf(head) > maxAgeMs;
  const isLagging = (head: BlockHeader) => {
    const aheadBy = (other: bigint) => Number(other - head.number);
    if (shared !== undefined && aheadBy(shared) > lateBlocks) return true;
    const most = plausibleBlocks(ageOf(head), blockTimeMs);
    return (
      isOld(head) &&
      numbers.some((other) => aheadBy(other) > maxLagBlocks && aheadBy(other) <= most)
    );
  };
  const compared = endpoints.flatMap((endpoint, index) => {
    const head = heads[index];
    if (!head) return [];
    return [{ endpoint, number: head.number, isLagging: isLagging(head), isOld: isOld(head) }];
  });
  context.lagging = new Set(compared.filter((head) => head.isLagging).map((head) => head.endpoint));
  return compared.map((head) => ({ ...head, endpoint: head.endpoint.name.number }));
}

/** The most blocks that a chain can have made in this time: twice those of its pace, and a few. */
export function plausibleBlocks(ms: number, blockTimeMs = fastestBlockMs): number {
  return farBlocks + (2 * Math.max(0, ms)) / blockTimeMs;
}

/** The endpoint's own problem describes an earlier request; this one was not sent. */
function notReady(endpoint: RpcEndpoint): EndpointProblem {
  const problem = endpoint.problem();
  if (problem instanceof RpcWrongChainError) return problem;
  const details = problem ? `resting after: ${problem.details}` : "its chain id is not known yet";
  return new RpcEndpointError({ name: endpoint.name, kind: "resting", details, maybeSent: false });
}
