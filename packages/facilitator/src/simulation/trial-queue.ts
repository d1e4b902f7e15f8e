import type { Address } from "@coinslot/protocol";
import type { Claim } from "../schemes/scheme.ts";
import type { SimulationResult } from "../schemes/simulation-result.ts";
import { roomForTransfers, sizeOf } from "./deployless-call.ts";

/** A caller's transfer that waits for its trial. */
export interface WaitingTrial {
  readonly transfer: Claim;
  readonly resolve: (reading: SimulationResult) => void;
  readonly reject: (error: unknown) => void;
  /** The same payer's next transfer. */
  next: WaitingTrial | undefined;
  /** Another caller with the same transfer. One trial answers both. */
  twin: WaitingTrial | undefined;
}

/** Transfers that wait for their trial. Payers take turns, and each payer's transfers are FIFO. */
export interface TrialQueue {
  isEmpty(): boolean;
  /** Appends a transfer to its payer's line, or joins the same one that waits there. */
  add(trial: WaitingTrial): void;
  /** Removes the transfers whose turn it is, at most as many as fit into one RPC request. */
  take(maxTransfers: number): WaitingTrial[];
  /** Length of a payer's line. */
  count(payer: Address): number;
}

/**
 * Creates a queue that is fair to payers (round robin): a payer with thousands of transfers delays
 * another's first one by a single turn. A line costs no memory while its payer has nothing in it.
 */
export function createTrialQueue(): TrialQueue {
  /** First transfer of each payer's line, in the order of their turns. */
  const lines = new Map<Address, WaitingTrial>();

  return {
    isEmpty: () => lines.size === 0,

    add(trial) {
      const { payer } = trial.transfer.id;
      let place = lines.get(payer);
      if (place === undefined) {
        lines.set(payer, trial);
        return;
      }
      while (!isSame(place.transfer, trial.transfer)) {
        if (place.next === undefined) {
          place.next = trial;
          return;
        }
        place = place.next;
      }
      trial.twin = place.twin;
      place.twin = trial;
    },

    take(maxTransfers) {
      const taken: WaitingTrial[] = [];
      let bytes = 0;
      // A line that is set again during the loop comes once more, after all others.
      for (const [payer, trial] of lines) {
        bytes += sizeOf(trial.transfer);
        if (taken.length > 0 && (bytes > roomForTransfers || taken.length >= maxTransfers)) break;
        taken.push(trial);
        lines.delete(payer);
        if (trial.next !== undefined) lines.set(payer, trial.next);
      }
      return taken;
    },

    count(payer) {
      let count = 0;
      for (let trial = lines.get(payer); trial !== undefined; trial = trial.next) count += 1;
      return count;
    },
  };
}

/** Whether one trial answers for both: the whole authorization and its signature are equal. */
function isSame(one: Claim, other: Claim): boolean {
  const { authorization: a } = one;
  const { authorization: b } = other;
  return (
    a.nonce === b.nonce &&
    one.signature === other.signature &&
    a.from === b.from &&
    a.to === b.to &&
    a.value === b.value &&
    a.validAfter === b.validAfter &&
    a.validBefore === b.validBefore &&
    one.id.asset === other.id.asset &&
    one.id.network === other.id.network &&
    one.kind === other.kind
  );
}
