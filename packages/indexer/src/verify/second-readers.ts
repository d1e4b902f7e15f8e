import { RpcEndpointError, type RpcEndpointHandle, RpcUnavailableError } from "@coinslot/chain";
import type { ChainContext } from "../chain-context.ts";
import type { KnownToken } from "../store/known-token.ts";

/** Refusals by other endpoints after which the first reader of a range may read it again. */
const refusalsOfOthers = 6;
/** The same of rounds in which no other one answers: longer than an endpoint rests. */
const patientRounds = 6;

/** Turns of the endpoints in the second reading of a segment. */
export interface SecondReaders {
  /** Begins a range. Returns the block before which the first reader is the same. */
  begin(from: number): number;
  /** The endpoint to ask. @param isOpen nothing bounds the range: all are asked */
  next(isOpen: boolean): RpcEndpointHandle | undefined;
  /** Notes that all of the range is verified. */
  agreed(): void;
  /** Notes that a range is not. `isContradiction`: by an answer, not for the want of one. */
  refused(by: { isContradiction: boolean }): void;
  /** True if the first reader is asked again about a range that an endpoint has contradicted. */
  isContradicted(): boolean;
  /** Notes an endpoint without an answer. True if none but the first reader is left to ask. */
  isSilence(error: unknown): boolean;
}

/**
 * Endpoints that read a range again: others than its first reader. Else one that hides a transfer
 * agrees with itself, where the first of the list was away for a moment. The first reader may only
 * where the others refuse, or stay away. Where one contradicts, its word alone is not enough. The
 * last of the list comes first. `token`: one of the segment, whose tokens have the same readers.
 */
export function createSecondReaders(
  { pool, outvoted, firstReaders }: Pick<ChainContext, "pool" | "outvoted" | "firstReaders">,
  token: KnownToken,
): SecondReaders {
  const endpoints = [...pool.endpoints].reverse();
  const silent = new Set<number>();
  let others: RpcEndpointHandle[] = [];
  let asked: RpcEndpointHandle | undefined;
  let at: number | undefined;
  let turn = 0;
  let refusals = 0;
  let isDenied = false;

  const { rounds } = firstReaders;

  function isSure(): boolean {
    const isPatient = Math.max(rounds.silent, rounds.behind) < patientRounds;
    return others.length > 0 && isPatient && refusals < refusalsOfOthers;
  }

  return {
    begin(from) {
      if (from !== at) {
        turn = 0;
        refusals = 0;
        isDenied = false;
      }
      at = from;
      const reader = firstReaders.of(token, from);
      const isOther = ({ endpoint }: RpcEndpointHandle) =>
        endpoint !== reader.endpoint && !outvoted.has(endpoint);
      others = reader.endpoint === undefined ? [] : endpoints.filter(isOther);
      return reader.next;
    },
    next(isOpen) {
      const rest = endpoints.filter((endpoint) => !others.includes(endpoint));
      const all = isSure() && !isOpen ? others : [...others, ...rest];
      asked = all[turn++ % all.length];
      return asked;
    },
    agreed() {
      if (asked !== undefined && others.includes(asked)) rounds.silent = rounds.behind = 0;
    },
    refused({ isContradiction }) {
      refusals += 1;
      if (isContradiction) isDenied = true;
    },
    isContradicted() {
      const isFirst = asked !== undefined && !others.includes(asked);
      return isFirst && others.length > 0 && isDenied;
    },
    isSilence(error) {
      if (asked === undefined || !others.includes(asked)) return false;
      // It is back, and may have the blocks in a moment.
      if (isBehind(error)) rounds.silent = 0;
      if (!isSure()) return false;
      silent.add(asked.endpoint);
      if (!others.every(({ endpoint }) => silent.has(endpoint))) return false;
      rounds[isBehind(error) ? "behind" : "silent"] += 1;
      return true;
    },
  };
}

/** The endpoint answers, and is not that far yet. */
function isBehind(error: unknown): boolean {
  return (
    error instanceof RpcUnavailableError &&
    error.failures.some(
      (failure) => failure instanceof RpcEndpointError && failure.kind === "behind",
    )
  );
}
