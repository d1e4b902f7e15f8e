import type { Hex } from "@coinslot/protocol";
import type { EscrowContext } from "../channels-context.ts";
import { type ChannelVotes, readByEach } from "./read-by-each.ts";

/** A look at channels by all endpoints. No claim waits for it: one of them may be slow. */
export interface ChannelLook {
  /** Begins a look. False while one is under way. */
  begin(ids: readonly Hex[]): boolean;
  /** The votes of the last look, once; `undefined`: it is not over, or they were taken. */
  take(): Map<Hex, ChannelVotes> | undefined;
}

/**
 * @param options.depth blocks below the head of each endpoint
 * @param options.onDone a look is over
 */
export function createChannelLook(
  escrow: EscrowContext,
  { depth, onDone }: { depth: number; onDone: () => void },
): ChannelLook {
  const { context, place } = escrow;
  let votes: Map<Hex, ChannelVotes> | undefined;
  let isRunning = false;

  async function look(ids: readonly Hex[]): Promise<void> {
    try {
      votes = await readByEach(escrow, { ids, depth });
    } catch (err) {
      context.logger.warn(
        { err, network: place.network },
        "endpoints could not be asked; retrying",
      );
    } finally {
      isRunning = false;
    }
    if (votes !== undefined) onDone();
  }

  return {
    begin(ids) {
      if (isRunning) return false;
      isRunning = true;
      void look(ids);
      return true;
    },
    take() {
      const taken = votes;
      votes = undefined;
      return taken;
    },
  };
}
