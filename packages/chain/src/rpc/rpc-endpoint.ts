import { createCircuitBreaker } from "./circuit-breaker.ts";
import {
  type ChannelOutcome,
  createRpcChannel,
  type ExchangeReport,
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
 * - `wrong-chain`: it serves another chain, and is never used.
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
  /** Whether it has failed before and needs a successful trial. */
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

/** One RPC server and its record: health, chain id, head and speed. */
export function createRpcEndpoint(options: RpcEndpointOptions): RpcEndpoint {
  const { name, clock, emit } = options;
  const endpoint = name.number;
  const channel = createRpcChannel({
    ...options,
    onExchange,
    onBatchLimit: (calls) => emit({ type: "endpoint-batch-limit", endpoint, calls }),
  });
  const breaker = createCircuitBreaker({
    clock,
    threshold: options.failureThreshold,
    restMs: options.restMs,
    maxRestMs: options.maxRestMs,
    onChange(state) {
      // A different server may answer after an outage: the chain id is read again.
      verified = false;
      if (state === "open") emit({ type: "endpoint-resting", endpoint, restMs: breaker.restMs() });
      else emit({ type: "endpoint-recovered", endpoint });
    },
  });
  let verified = false;
  let checking: Promise<void> | undefined;
  let wrongChain: RpcWrongChainError | undefined;
  let lastFailure: RpcEndpointError | undefined;
  let head: bigint | undefined;
  let latencyMs: number | undefined;

  function state(): EndpointState {
    if (wrongChain) return "wrong-chain";
    if (breaker.state() === "open") return "resting";
    return verified && breaker.state() === "closed" ? "ready" : "unchecked";
  }

  function onExchange({ startedAt, failure }: ExchangeReport) {
    if (failure) return onFailure(failure, startedAt);
    const tookMs = clock.now() - startedAt;
    latencyMs = latencyMs === undefined ? tookMs : latencyMs + (tookMs - latencyMs) / 8;
    breaker.succeeded(startedAt);
  }

  function onFailure(failure: RpcEndpointError, startedAt: number) {
    lastFailure = failure;
    emit({ type: "endpoint-failed", endpoint, kind: failure.kind, message: failure.message });
    // Rests at once if the server asked for it, or if its trial failed; else after a few failures.
    const atOnce =
      !verified ||
      failure.retryAfterMs !== undefined ||
      failure.kind === "rate-limited" ||
      failure.kind === "unauthorized";
    const askedMs = Math.min(failure.retryAfterMs ?? 0, maxRetryAfterMs);
    breaker.failed(startedAt, atOnce ? askedMs : undefined);
  }

  async function send(calls: readonly RpcCall[], sendOptions: Omit<SendOptions, "mayStart">) {
    const mayStart = () => state() === "ready";
    const outcomes = await channel.send(calls, { mayStart, ...sendOptions });
    for (const [index, call] of calls.entries()) {
      const outcome = outcomes[index];
      if (outcome?.ok) head = reportedHead(call, outcome.result) ?? head;
    }
    return outcomes;
  }

  async function findOutChain(): Promise<void> {
    const timeoutMs = Math.min(options.timeoutMs, checkTimeoutMs);
    const outcomes = await channel
      .send([{ method: "eth_chainId" }], { timeoutMs, signal: undefined, mayStart: () => true })
      // Rejects only when the pool closes; then the state has no reader any more.
      .catch(() => []);
    const [outcome] = outcomes;
    if (!outcome) return;
    const actual = outcome.ok ? reportedChainId(outcome.result) : undefined;
    if (actual === options.chainId) {
      verified = true;
    } else if (actual !== undefined) {
      wrongChain = new RpcWrongChainError({ name, expected: options.chainId, actual });
      emit({ type: "endpoint-wrong-chain", endpoint, chainId: actual });
    } else if (outcome.ok || outcome.error instanceof RpcResponseError) {
      // It answers, but without a chain id: unusable, though the exchange itself succeeded.
      const details = "no chain id in the answer to eth_chainId";
      const failure = new RpcEndpointError({ name, kind: "malformed", details, maybeSent: true });
      onFailure(failure, clock.now());
    }
  }

  return {
    name,
    state,
    onTrial: () => breaker.state() === "half-open",
    restMs: breaker.restMs,
    check() {
      if (state() !== "unchecked") return Promise.resolve();
      checking ??= findOutChain().finally(() => {
        checking = undefined;
      });
      return checking;
    },
    send,
    head: () => head,
    latencyMs: () => latencyMs,
    inFlight: channel.inFlight,
    problem: () => wrongChain ?? lastFailure,
  };
}
