import { settleTimeoutMsFor } from "@coinslot/protocol";
import type { FixedTimes, SettlementTimes } from "../context.ts";
import type { BlockPace } from "./block-pace.ts";

/** Times of one network that follow the pace of its blocks, unless they are configured. */
export interface PacedTimes {
  resendMs(): number;
  replaceMs(): number;
  loseMs(): number;
  /** Wait for an outcome that counts with this many blocks on top of its own. */
  settleTimeoutMs(depth: number): number;
}

/** Times that follow the pace of blocks where they are `undefined`. */
export type ConfiguredTimes = Partial<
  Record<Exclude<keyof SettlementTimes, keyof FixedTimes> | "settleTimeoutMs", number | undefined>
>;

/** Below these no pace leads: a node and its pool have a pace of their own. */
const minMs = { resend: 2_000, replace: 8_000, lose: 15_000 };
/** Blocks that come on demand alone, as on a devnet, may be hours apart: they set no pace. */
const maxMs = 60_000;
/** The next block and a half has come without it. */
const resendBlocks = 1.5;
/** A price that three blocks did not take is too low. */
const replaceBlocks = 3;
/** A reorganisation may still give the nonce back. */
const loseBlocks = 3;

/** Derives times from a network's pace. With blocks of 2 s and faster they are nearly constant. */
export function createPacedTimes(pace: BlockPace, configured: ConfiguredTimes): PacedTimes {
  const follow = (ms: number, blocks: number) =>
    Math.max(ms, Math.min(blocks * (pace.blockMs() ?? 0), maxMs));
  return {
    resendMs: () => configured.resendMs ?? follow(minMs.resend, resendBlocks),
    replaceMs: () => configured.replaceMs ?? follow(minMs.replace, replaceBlocks),
    loseMs: () => configured.loseMs ?? follow(minMs.lose, loseBlocks),
    settleTimeoutMs: (depth) =>
      configured.settleTimeoutMs ?? settleTimeoutMsFor(pace.blockMs(), depth),
  };
}
