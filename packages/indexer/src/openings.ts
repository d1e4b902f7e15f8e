import { type RpcOutcome, RpcResponseError } from "@coinslot/chain";
import type { ChainContext } from "./chain-context.ts";
import { toQuantity } from "./rpc/get-logs.ts";
import { readCoverage } from "./store/coverage.ts";
import type { KnownToken } from "./store/known-token.ts";

/** The knowledge whether addresses can have had balances before the start of a token. */
export interface Openings {
  /** Asks each endpoint, and records what they answer. */
  find(): Promise<void>;
  /** Does so again, beside the caller's work, where an endpoint was silent `verifyAfterMs` ago. */
  findMissing(): void;
  /** Resolves when nothing is asked. */
  ended(): Promise<void>;
}

/**
 * Records for each token whether an address can have had a balance before its start block. None can
 * if there was no block before, or no code at the token's address in it. Each endpoint is asked,
 * and two have to answer where there are two: one that denies the code would make balances wrong.
 * Else it is open, as where no other node keeps states that old. Then balances before the start are
 * asked for one by one, as if there were any. Where every endpoint is silent, the record stays if
 * the token's first indexed block is its start: else it may be of another start.
 */
export function createOpenings(context: ChainContext, signal: AbortSignal): Openings {
  const { tokens, pool, lease, chain, clock, logger, database } = context;
  const enough = Math.min(2, pool.endpoints.length);
  let isMissing = false;
  let askedAt = Number.NEGATIVE_INFINITY;
  let running: Promise<void> | undefined;

  async function find(): Promise<void> {
    askedAt = clock.now();
    const later = tokens.filter(({ startBlock }) => startBlock > 0);
    const calls = later.map(({ address, startBlock }) => ({
      method: "eth_getCode",
      params: [address, toQuantity(startBlock - 1)],
    }));
    const answers = await Promise.allSettled(
      pool.endpoints.map((endpoint) => endpoint.requestMany(calls, { signal })),
    );
    signal.throwIfAborted();
    const judged = tokens.map((token) => {
      const index = later.indexOf(token);
      if (index === -1) return { token, opensAtZero: 1, isOpen: false };
      return { token, ...judge(answers.map((each) => outcomeOf(each, index))) };
    });
    const coverage = await readCoverage(database.kysely, tokens);
    await lease.write(async (transaction) => {
      for (const { token, opensAtZero = keptOf(token, coverage) } of judged)
        if (opensAtZero !== undefined)
          await transaction
            .updateTable("indexer_tokens")
            .set({ opens_at_zero: opensAtZero })
            .where("id", "=", token.id)
            .execute();
    });
    isMissing = judged.some(({ isOpen }) => isOpen);
  }

  /** Undefined: no endpoint has answered. It is open where the silent ones could make it zero. */
  function judge(outcomes: readonly (RpcOutcome | undefined)[]) {
    const codes = outcomes.flatMap((each) => (each?.ok === true ? [each.result] : []));
    const silent = outcomes.filter(
      (each) => each?.ok !== true && !(each?.error instanceof RpcResponseError),
    ).length;
    const isDenied = codes.every((code) => code === "0x");
    const isZero = isDenied && codes.length >= enough;
    return {
      opensAtZero: silent === outcomes.length ? undefined : isZero ? 1 : 0,
      isOpen: isDenied && !isZero && codes.length + silent >= enough,
    };
  }

  return {
    find,
    findMissing() {
      if (!isMissing || clock.now() - askedAt < chain.verifyAfterMs) return;
      running ??= find()
        .catch((error: unknown) => {
          // A writer that has lost its lease finds so itself.
          if (signal.aborted) return;
          logger.warn({ chain: chain.name, error }, "A token's code was not asked for; retrying");
        })
        .finally(() => {
          running = undefined;
        });
    },
    ended: () => running ?? Promise.resolve(),
  };
}

/** Undefined: the record stays. */
function keptOf(
  { id, startBlock }: KnownToken,
  coverage: Awaited<ReturnType<typeof readCoverage>>,
): 0 | undefined {
  return coverage.get(id)?.[0]?.from === startBlock ? undefined : 0;
}

function outcomeOf(
  answer: PromiseSettledResult<readonly RpcOutcome[]>,
  index: number,
): RpcOutcome | undefined {
  return answer.status === "fulfilled" ? answer.value[index] : undefined;
}
