import { createSingleFlight, type SingleFlight } from "@coinslot/concurrency";
import { type CircuitBreaker, createCircuitBreaker } from "./circuit-breaker.ts";
import type { ChannelOutcome } from "./read-response.ts";
import {
  createRpcChannel,
  type ExchangeReport,
  type RpcChannel,
  type RpcChannelOptions,
  type SendOptions,
} from "./rpc-channel.ts";
import type { RpcCall } from "./rpc-envelope.ts";
import {
  type EndpointFailureKind,
  type EndpointName,
  type EndpointProblem,
  RpcEndpointError,
  RpcResponseError,
  RpcWrongChainError,
} from "./rpc-errors.ts";
import { reportedChainId, reportedHead } from "./rpc-methods.ts";

/**
 * States of an endpoint:
 *
 * - `unchecked`: its chain id is not known yet, or it comes back from a rest.
 * - `ready`: it serves the pool's chain, and answers.
 * - `resting`: it failed, or asked for a pause, and receives no requests for a while.
 * - `wrong-chain`: it served another chain, and rests for longer.
 */
export type EndpointState = "unchecked" | "ready" | "resting" | "wrong-chain";

export type EndpointEvent =
  | { type: "endpoint-failed"; endpoint: number; kind: EndpointFailureKind; message: string }
  | { type: "endpoint-resting"; endpoint: number; restMs: number }
  | { type: "endpoint-recovered"; endpoint: number }
  | { type: "endpoint-wrong-chain"; endpoint: number; chainId: number }
  | { type: "endpoint-batch-limit"; endpoint: number; calls: number };

export interface RpcEndpoint {
  readonly name: EndpointName;
  state(): EndpointState;
  /** Returns whether it has failed before and needs a successful trial. */
  onTrial(): boolean;
  /** Remaining rest. */
  restMs(): number;
  /**
   * Reads the chain id, which also ends or prolongs a rest. Never rejects: `state()` has the
   * outcome.
   */
  check(): Promise<void>;
  /** One outcome per call, in order. Rejects only with the reason of an abort. */
  send(
    calls: readonly RpcCall[],
    options: Omit<SendOptions, "mayStart">,
  ): Promise<ChannelOutcome[]>;
  /**
   * Reports an error or a malformed result that it returned, where another endpoint had an answer.
   * It goes on in turn.
   */
  outvoted(error: RpcResponseError | RpcEndpointError): void;
  /** The last head that it reported. */
  head(): bigint | undefined;
  latencyMs(): number | undefined;
  inFlight(): number;
  /** The present or last reason why it could not be used. */
  problem(): EndpointProblem | undefined;
}

export interface RpcEndpointOptions extends Omit<RpcChannelOptions, "onExchange" | "onBatchLimit"> {
  chainId: number;
  timeoutMs: number;
  failureThreshold: number;
  restMs: number;
  maxRestMs: number;
  emit: (event: EndpointEvent) => void;
}

/** A trial must not delay callers as long as a heavy read may. */
const checkTimeoutMs = 3_000;
/** Cap on `Retry-After`: a server that asks for more is still tried again after this. */
const maxRetryAfterMs = 3_600_000;
/**
 * Rest of an endpoint of another chain, doubled each time. A gateway may have sent one request
 * elsewhere.
 */
const wrongChainRestMs = 15_000;
const maxWrongChainRestMs = 600_000;

/** The parts of one endpoint, and its record. */
interface EndpointContext {
  readonly options: RpcEndpointOptions;
  readonly channel: RpcChannel;
  readonly breaker: CircuitBreaker;
  /** One read of the chain id at a time: all callers share it. */
  readonly checks: SingleFlight;
  /** True if its chain id is known, and is the pool's. */
  verified: boolean;
  /** Since it last served the pool's chain: rests for another one, and the end of the last. */
  wrongChain: { rests: number; until: number } | undefined;
  problem: EndpointProblem | undefined;
  head: bigint | undefined;
  latencyMs: number | undefined;
}

/** One RPC server and its record: health, chain id, head and speed. */
export function createRpcEndpoint(options: RpcEndpointOptions): RpcEndpoint {
  const context = createContext(options);
  const { channel, breaker } = context;
  const mayStart = () => stateOf(context) === "ready";
  return {
    name: options.name,
    state: () => stateOf(context),
    onTrial: () => breaker.state() === "half-open" || isPastWrongChain(context),
    restMs: () => Math.max(breaker.restMs(), wrongChainMs(context)),
    check: () => check(context),
    send: (calls, sendOptions) => send(context, calls, { mayStart, ...sendOptions }),
    outvoted: (error) =>
      options.emit({
        type: "endpoint-failed",
        endpoint: options.name.number,
        kind: error instanceof RpcEndpointError ? error.kind : "refused",
        message: error.message,
      }),
    head: () => context.head,
    latencyMs: () => context.latencyMs,
    inFlight: channel.inFlight,
    problem: () => context.problem,
  };
}

function createContext(options: RpcEndpointOptions): EndpointContext {
  const { name, clock, emit } = options;
  const endpoint = name.number;
  const context: EndpointContext = {
    options,
    channel: createRpcChannel({
      ...options,
      onExchange: (report) => onExchange(context, report),
      onBatchLimit: (calls) => emit({ type: "endpoint-batch-limit", endpoint, calls }),
    }),
    breaker: createCircuitBreaker({
      clock,
      threshold: options.failureThreshold,
      restMs: options.restMs,
      maxRestMs: options.maxRestMs,
      onChange(state) {
        // A different server may answer after an outage: the chain id is read again.
        context.verified = false;
        if (state === "closed") return emit({ type: "endpoint-recovered", endpoint });
        emit({ type: "endpoint-resting", endpoint, restMs: context.breaker.restMs() });
      },
    }),
    checks: createSingleFlight(() => readChainId(context)),
    verified: false,
    wrongChain: undefined,
    problem: undefined,
    head: undefined,
    latencyMs: undefined,
  };
  return context;
}

function stateOf(context: EndpointContext): EndpointState {
  const { breaker, verified } = context;
  if (wrongChainMs(context) > 0) return "wrong-chain";
  const circuit = breaker.state();
  if (circuit === "open") return "resting";
  return verified && circuit === "closed" ? "ready" : "unchecked";
}

/** Remaining rest for another chain. */
function wrongChainMs({ wrongChain, options }: EndpointContext): number {
  return wrongChain === undefined ? 0 : Math.max(0, wrongChain.until - options.clock.now());
}

/** True once its rest for another chain is over, until it serves the pool's again. */
function isPastWrongChain(context: EndpointContext): boolean {
  return context.wrongChain !== undefined && wrongChainMs(context) === 0;
}

async function send(
  context: EndpointContext,
  calls: readonly RpcCall[],
  sendOptions: SendOptions,
): Promise<ChannelOutcome[]> {
  const outcomes = await context.channel.send(calls, sendOptions);
  for (const [index, call] of calls.entries()) {
    const outcome = outcomes[index];
    if (outcome?.ok) context.head = reportedHead(call, outcome.result) ?? context.head;
  }
  return outcomes;
}

function check(context: EndpointContext): Promise<void> {
  return stateOf(context) === "unchecked" ? context.checks.join() : Promise.resolve();
}

async function readChainId(context: EndpointContext): Promise<void> {
  const { channel, options } = context;
  const { name, chainId: expected, emit, clock } = options;
  const timeoutMs = Math.min(options.timeoutMs, checkTimeoutMs);
  const outcomes = await channel
    .send([{ method: "eth_chainId" }], { timeoutMs, signal: undefined, mayStart: () => true })
    // Rejects only when the pool closes; then the state has no reader any more.
    .catch(() => []);
  const [outcome] = outcomes;
  if (!outcome) return;
  const actual = outcome.ok ? reportedChainId(outcome.result) : undefined;
  if (actual === expected) {
    context.verified = true;
    if (context.wrongChain) emit({ type: "endpoint-recovered", endpoint: name.number });
    context.wrongChain = undefined;
  } else if (actual !== undefined) {
    const rests = context.wrongChain?.rests ?? 0;
    const restMs = Math.min(wrongChainRestMs * 2 ** rests, maxWrongChainRestMs);
    context.wrongChain = { rests: rests + 1, until: clock.now() + restMs };
    // A head of the other chain says nothing about the pool's.
    context.head = undefined;
    context.problem = new RpcWrongChainError({ name, expected, actual });
    emit({ type: "endpoint-wrong-chain", endpoint: name.number, chainId: actual });
  } else if (outcome.ok || outcome.error instanceof RpcResponseError) {
    // It answers, but without a chain id: unusable, though the exchange itself succeeded.
    const details = "no chain id in the answer to eth_chainId";
    const failure = new RpcEndpointError({ name, kind: "malformed", details, maybeSent: true });
    onFailure(context, failure, clock.now());
  }
}

function onExchange(context: EndpointContext, { startedAt, failure }: ExchangeReport): void {
  if (failure) {
    onFailure(context, failure, startedAt);
    return;
  }
  const { latencyMs, breaker, options } = context;
  const tookMs = options.clock.now() - startedAt;
  context.latencyMs = latencyMs === undefined ? tookMs : latencyMs + (tookMs - latencyMs) / 8;
  breaker.succeeded(startedAt);
}

function onFailure(context: EndpointContext, failure: RpcEndpointError, startedAt: number): void {
  const { breaker, options } = context;
  const { kind, message, retryAfterMs } = failure;
  context.problem = failure;
  options.emit({ type: "endpoint-failed", endpoint: options.name.number, kind, message });
  // Rests at once if the server asked for it, or if its trial failed; else after a few failures.
  const atOnce =
    !context.verified ||
    retryAfterMs !== undefined ||
    kind === "rate-limited" ||
    kind === "unauthorized";
  const askedMs = Math.min(retryAfterMs ?? 0, maxRetryAfterMs);
  breaker.failed(startedAt, atOnce ? askedMs : undefined);
}
