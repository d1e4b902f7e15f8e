import type { Devnet } from "@coinslot/devnet";

/**
 * Mines an empty block every second besides those of the payments. The reference's library looks
 * for a receipt when a block comes, and misses one that comes while it looks. Without another, the
 * last payments of a turn would not end.
 *
 * @returns ends that
 */
export function mineEverySecond(devnet: Devnet): () => void {
  const timer = setInterval(() => void devnet.mine(), 1_000);
  return () => clearInterval(timer);
}
