/** Failures between this process and one endpoint that leave a request without an answer. */
export type EndpointFailureKind =
  /** No complete answer within the time limit. */
  | "timeout"
  /** Refused, reset, name not found, TLS: the connection failed. */
  | "connection"
  /** An HTTP status that is no answer (5xx, 404, a redirect). */
  | "http"
  /** HTTP 401 or 403: the key is missing, wrong or used up. */
  | "unauthorized"
  /** HTTP 429, or a JSON-RPC error that says the same. */
  | "rate-limited"
  /**
   * Not JSON, not JSON-RPC, an answer to another request, or none to this one. Or a malformed
   * result, where another endpoint had a good one.
   */
  | "malformed"
  /** The answer was larger than `maxResponseBytes`. */
  | "too-large"
  /** A JSON-RPC error that is the node's own: another endpoint answered the same call. */
  | "refused"
  /**
   * The request waited for this process's own limits until its time was over. It was never sent.
   */
  | "busy"
  /** It failed before and rests. Not sent. */
  | "resting"
  /** The endpoint has not seen the block that the read asked for. */
  | "behind";

/** Name of an endpoint in texts and fields. Its URL is never part of it. */
export interface EndpointName {
  /** Place in the configuration, counted from 1. */
  number: number;
  /** "endpoint 2 of 3" */
  label: string;
}

/** Base of every error of this package. Messages name endpoints by number and never hold a URL. */
export abstract class RpcError extends Error {
  /** True if the same request may succeed later without any change. */
  abstract readonly retryable: boolean;
}

/** The node understood the request and answered with a JSON-RPC error object. */
export class RpcResponseError extends RpcError {
  override readonly name = "RpcResponseError";
  readonly retryable = false;
  readonly method: string;
  /** JSON-RPC error code, e.g. 3 for a revert in most nodes, -32000 for most other refusals. */
  readonly code: number;
  /** The node's own message, with URLs removed. */
  readonly details: string;
  /** `error.data` as the node sent it (revert data is a hex string), with URLs removed. */
  readonly data: unknown;
  /** Number of the endpoint, counted from 1. */
  readonly endpoint: number;

  constructor(options: {
    method: string;
    code: number;
    details: string;
    data: unknown;
    name: EndpointName;
  }) {
    super(
      `${options.method} was answered with error ${options.code} by ${options.name.label}: ${options.details}`,
    );
    this.method = options.method;
    this.code = options.code;
    this.details = options.details;
    this.data = options.data;
    this.endpoint = options.name.number;
  }
}

/** One endpoint gave no usable answer. Found in `RpcUnavailableError.failures`. */
export class RpcEndpointError extends RpcError {
  override readonly name = "RpcEndpointError";
  readonly retryable = true;
  readonly kind: EndpointFailureKind;
  readonly details: string;
  readonly endpoint: number;
  /** `false` only where it is certain that no node has seen the request. */
  readonly maybeSent: boolean;
  /** Duration of the pause that the endpoint asked for. */
  readonly retryAfterMs: number | undefined;

  constructor(options: {
    name: EndpointName;
    kind: EndpointFailureKind;
    details: string;
    maybeSent: boolean;
    retryAfterMs?: number | undefined;
  }) {
    super(`${options.name.label}: ${options.details}`);
    this.kind = options.kind;
    this.details = options.details;
    this.endpoint = options.name.number;
    this.maybeSent = options.maybeSent;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** An endpoint serves another chain. It is not used while it does. */
export class RpcWrongChainError extends RpcError {
  override readonly name = "RpcWrongChainError";
  readonly retryable = false;
  readonly endpoint: number;
  readonly expectedChainId: number;
  readonly actualChainId: number;

  constructor(options: { name: EndpointName; expected: number; actual: number }) {
    super(
      `${options.name.label} serves chain ${options.actual} instead of chain ${options.expected}`,
    );
    this.endpoint = options.name.number;
    this.expectedChainId = options.expected;
    this.actualChainId = options.actual;
  }
}

export type EndpointProblem = RpcEndpointError | RpcWrongChainError;

/** No endpoint gave an answer. `failures` holds the failure of each of them, in order. */
export class RpcUnavailableError extends RpcError {
  override readonly name = "RpcUnavailableError";
  /** Also where every endpoint serves another chain: each is asked again. */
  readonly retryable = true;
  readonly failures: readonly EndpointProblem[];
  /** True if a node may have seen the request all the same; matters for transactions. */
  readonly maybeSent: boolean;
  /** The time until an endpoint is tried again. 0: at once. */
  readonly retryAfterMs: number;

  constructor(options: {
    chainId: number;
    subject: string;
    failures: readonly EndpointProblem[];
    retryAfterMs: number;
  }) {
    const reasons = [...new Set(options.failures.map((failure) => failure.message))].join("; ");
    super(
      `No RPC endpoint of chain ${options.chainId} answered ${options.subject}${reasons && `: ${reasons}`}`,
      { cause: new AggregateError(options.failures) },
    );
    this.failures = options.failures;
    this.maybeSent = options.failures.some(
      (failure) => failure instanceof RpcEndpointError && failure.maybeSent,
    );
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** `ready()` found no endpoint that can be used. All problems at once. */
export class RpcNotReadyError extends RpcError {
  override readonly name = "RpcNotReadyError";
  /** False where every endpoint serves another chain. */
  readonly retryable: boolean;
  readonly problems: readonly EndpointProblem[];

  constructor(chainId: number, problems: readonly EndpointProblem[]) {
    super(
      `The RPC endpoints of chain ${chainId} are not ready: ${problems.map((problem) => problem.message).join("; ")}`,
      { cause: new AggregateError(problems) },
    );
    this.problems = problems;
    this.retryable = problems.length === 0 || problems.some((problem) => problem.retryable);
  }
}

/** The pool was closed, before the request or while it was running. */
export class RpcClosedError extends RpcError {
  override readonly name = "RpcClosedError";
  readonly retryable = false;

  constructor(chainId: number) {
    super(`The RPC pool of chain ${chainId} is closed`);
  }
}
