import type { RpcCall } from "./rpc-envelope.ts";
import { RpcUnavailableError } from "./rpc-errors.ts";
import type { RpcRequester } from "./rpc-requester.ts";

export interface CallBatcherOptions {
  rpc: RpcRequester;
  /** Calls in one HTTP request. Default 50. */
  maxBatchSize?: number;
  /** HTTP requests in flight; further calls gather meanwhile. Default 4. */
  maxConcurrent?: number;
}

export interface CallBatcher {
  /**
   * As `RpcRequester.request`, with the same errors; a failure of another call in the batch is not
   * passed on.
   */
  request(call: RpcCall, options?: { minBlock?: bigint }): Promise<unknown>;
}

interface Waiting {
  call: RpcCall;
  minBlock: bigint | undefined;
  resolve: (result: unknown) => void;
  reject: (error: unknown) => void;
}

/** Runs after the I/O of this turn, so that requests which arrived together leave together. */
const afterThisTurn: (run: () => void) => void =
  typeof setImmediate === "function" ? setImmediate : queueMicrotask;

/**
 * Lets concurrent callers share JSON-RPC batches: calls of one turn of the event loop leave in one
 * HTTP request. When idle, a call leaves at once. When busy, calls gather, so batches grow with the
 * load. The node executes each call by itself, so none sees another's effects.
 *
 * It is no batcher of `@coinslot/concurrency`. The calls of a request share one `minBlock`, and
 * `maxConcurrent` bounds the requests of all of them together.
 */
export function createCallBatcher(options: CallBatcherOptions): CallBatcher {
  const { rpc, maxBatchSize = 50, maxConcurrent = 4 } = options;
  let queue: Waiting[] = [];
  let onTheirWay = 0;
  let scheduled = false;

  function schedule() {
    if (scheduled || queue.length === 0 || onTheirWay >= maxConcurrent) return;
    scheduled = true;
    afterThisTurn(flush);
  }

  function flush() {
    scheduled = false;
    while (queue.length > 0 && onTheirWay < maxConcurrent) {
      // A call for a block that no endpoint has yet must not delay the others.
      const wish = queue[0]?.minBlock;
      const batch = queue.filter(({ minBlock }) => minBlock === wish).slice(0, maxBatchSize);
      queue = queue.filter((each) => !batch.includes(each));
      onTheirWay += 1;
      void deliver(batch, wish).finally(() => {
        onTheirWay -= 1;
        schedule();
      });
    }
  }

  async function deliver(batch: readonly Waiting[], minBlock: bigint | undefined): Promise<void> {
    try {
      const outcomes = await rpc.requestMany(
        batch.map(({ call }) => call),
        minBlock === undefined ? {} : { minBlock },
      );
      for (const [index, { call, resolve, reject }] of batch.entries()) {
        const outcome = outcomes[index];
        if (outcome?.ok) resolve(outcome.result);
        else reject(outcome?.error ?? missing(call));
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  function missing(call: RpcCall) {
    const { chainId } = rpc;
    return new RpcUnavailableError({
      chainId,
      subject: call.method,
      failures: [],
      retryAfterMs: 0,
    });
  }

  return {
    request(call, { minBlock } = {}) {
      return new Promise((resolve, reject) => {
        queue.push({ call, minBlock, resolve, reject });
        schedule();
      });
    },
  };
}
