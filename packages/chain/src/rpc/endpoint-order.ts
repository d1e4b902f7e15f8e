import { type Clock, sleep } from "../clock.ts";
import { withLinkedAbort } from "./linked-abort.ts";
import type { RpcEndpoint } from "./rpc-endpoint.ts";
import { type EndpointProblem, RpcEndpointError, RpcWrongChainError } from "./rpc-errors.ts";

export interface EndpointWish {
  minBlock?: bigint;
  signal?: AbortSignal;
}

/** The endpoints to try for one request. `passOver` receives the reason why one was skipped. */
export type EndpointSource = (
  wish: EndpointWish,
  passOver: (problem: EndpointProblem) => void,
) => AsyncIterable<RpcEndpoint>;

export interface EndpointOrder {
  /** Usable endpoints, the best first, repeated until `patienceMs` is over. */
  candidates: EndpointSource;
  /** The given endpoint, if it can be used now. */
  only(endpoint: RpcEndpoint): EndpointSource;
  /** Asks every endpoint for its head; lagging ones then come last. Rejects only on close. */
  compareHeads(): Promise<void>;
  isLagging(endpoint: RpcEndpoint): boolean;
  /** Time until an endpoint may be used again; infinite when all serve another chain. */
  soonestMs(): number;
}

const retryPauseMs = 100;

/** Decides which endpoint is asked next. */
export function createEndpointOrder(options: {
  endpoints: readonly RpcEndpoint[];
  timeoutMs: number;
  patienceMs: number;
  maxLagBlocks: number;
  headCheckMs: number;
  clock: Clock;
  closing: AbortSignal;
}): EndpointOrder {
  const { endpoints, timeoutMs, clock, closing } = options;
  let lagging: ReadonlySet<RpcEndpoint> = new Set();
  let headsComparedAt = clock.now();

  /** The reason why the endpoint cannot be used for this request now; undefined: none. */
  async function findObstacle(
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
    const details = `its head is ${head ?? "unknown"}, block ${minBlock} was asked for`;
    return new RpcEndpointError({ name: endpoint.name, kind: "behind", details, maybeSent: false });
  }

  async function* usable(
    some: readonly RpcEndpoint[],
    wish: EndpointWish,
    passOver: (problem: EndpointProblem) => void,
  ) {
    for (const endpoint of some) {
      const obstacle = await findObstacle(endpoint, wish);
      if (obstacle) passOver(obstacle);
      else yield endpoint;
    }
  }

  async function* candidates(
    wish: EndpointWish,
    passOver: (problem: EndpointProblem) => void,
  ): AsyncGenerator<RpcEndpoint, void, void> {
    const sources = wish.signal ? [wish.signal, closing] : [closing];
    const deadline = clock.now() + options.patienceMs;
    compareHeadsNowAndThen();
    for (;;) {
      // A trial runs beside the request, so that no request waits for it while others are healthy.
      const onTrial = endpoints.filter((endpoint) => endpoint.onTrial());
      for (const endpoint of onTrial) void endpoint.check();
      const well = endpoints.filter((endpoint) => !onTrial.includes(endpoint));
      const inOrder = [...well.filter((each) => !lagging.has(each)), ...well.filter(isLagging)];
      yield* usable([...inOrder, ...onTrial], wish, passOver);

      const pauseMs = Math.max(retryPauseMs, soonestMs());
      if (clock.now() + pauseMs > deadline) return;
      await withLinkedAbort(sources, ({ signal }) => sleep(clock, pauseMs, signal));
    }
  }

  function soonestMs(): number {
    const ours = endpoints.filter((endpoint) => endpoint.state() !== "wrong-chain");
    return Math.min(...ours.map((endpoint) => endpoint.restMs()));
  }

  async function compareHeads(): Promise<void> {
    headsComparedAt = clock.now();
    const heads = await Promise.all(
      endpoints.map(async (endpoint) => {
        if (await findObstacle(endpoint, {})) return undefined;
        const call = { method: "eth_blockNumber" };
        const [outcome] = await endpoint.send([call], { timeoutMs, signal: undefined });
        return outcome?.ok ? endpoint.head() : undefined;
      }),
    );
    const best = heads.reduce<bigint>((max, head = 0n) => (head > max ? head : max), 0n);
    lagging = new Set(
      endpoints.filter((_, index) => {
        const head = heads[index];
        return head !== undefined && best - head > BigInt(options.maxLagBlocks);
      }),
    );
  }

  function compareHeadsNowAndThen() {
    if (endpoints.length === 1 || clock.now() - headsComparedAt < options.headCheckMs) return;
    compareHeads().catch(() => undefined);
  }

  function isLagging(endpoint: RpcEndpoint) {
    return lagging.has(endpoint);
  }

  return {
    candidates,
    only: (endpoint) => (wish, passOver) => usable([endpoint], wish, passOver),
    compareHeads,
    isLagging,
    soonestMs,
  };
}

/** The endpoint's own problem describes an earlier request; this one was not sent. */
function notReady(endpoint: RpcEndpoint): EndpointProblem {
  const problem = endpoint.problem();
  if (problem instanceof RpcWrongChainError) return problem;
  const details = problem ? `resting after: ${problem.details}` : "its chain id is not known yet";
  return new RpcEndpointError({ name: endpoint.name, kind: "resting", details, maybeSent: false });
}
