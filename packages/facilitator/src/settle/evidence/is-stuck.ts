import type { BlockHeader } from "@coinslot/chain";

const maxHeadAgeMs = 600_000;

type DatedHead = Pick<BlockHeader, "timestamp">;

/**
 * True if an endpoint's head is older than ten minutes, while another's is newer. Decisions that
 * ask each endpoint would wait for it for ever. The age is by this machine's clock, since a node
 * that lies may name any height.
 *
 * @param now Unix milliseconds
 */
export function isStuck(head: DatedHead, all: readonly DatedHead[], now: number): boolean {
  return isOld(head, now) && !all.every((each) => isOld(each, now));
}

/** True if a head is older than ten minutes. */
export function isOld({ timestamp }: DatedHead, now: number): boolean {
  return now - Number(timestamp) * 1_000 > maxHeadAgeMs;
}
