import type { Address, Hash, Hex } from "viem";

/**
 * Progress of a transfer. `hash` is that of the transaction on the source chain, for approvals
 * their own. `transaction` is the signed transaction itself, which any holder can send.
 *
 * Reported by `bridge`:
 * - `approving`: an approval is signed, and about to be sent.
 * - `approved`: the contract may take what is to be sent. No token has moved.
 * - `sending`: the transfer is signed, and about to be sent. From here on, track it before sending
 *   again.
 * - `sent`: the transfer is in a block of the source chain.
 *
 * Reported by `track`:
 * - `pending`: the transfer is in no block of the source chain, or not any more.
 * - `in_flight`: the tokens have left the source chain, and are not on the target chain.
 * - `received`: they are on the target chain, in a block that is not deep enough yet, or not
 *   confirmed by nodes of two hosts of each chain.
 * - `delivered`: they are on the target chain, deep enough.
 */
export type TransferProgress =
  | { state: "approving" | "sending"; hash: Hash; transaction: Hex }
  | { state: "approved"; hash: Hash }
  | { state: "sent"; hash: Hash; guid: Hex }
  | TrackedProgress;

/** Progress reported by `track`. */
export type TrackedProgress =
  | { state: "pending"; hash: Hash }
  | InFlight
  | (Arrival & { state: "received" })
  | Delivered;

interface Departure {
  hash: Hash;
  /** LayerZero's id of the message: the same on both chains. */
  guid: Hex;
  /** Key of the chain. */
  sourceChain: string;
  /** Key of the chain. */
  targetChain: string;
  sourceBlock: bigint;
  /** The amount that left the account, in the smallest unit of the token on the source chain. */
  amountSent: bigint;
}

export interface InFlight extends Departure {
  state: "in_flight";
  /** The newest block of the target chain in which the tokens were looked for. */
  searchedTo: bigint | undefined;
}

interface Arrival extends Departure {
  targetHash: Hash;
  targetBlock: bigint;
  /** The target block and those on top of it. */
  confirmations: number;
  recipient: Address;
  /** The amount that arrived, in the smallest unit of the token on the target chain. */
  amountReceived: bigint;
}

/** The end of a transfer. */
export interface Delivered extends Arrival {
  state: "delivered";
}

/** Returns whether a change is worth a report. */
export function isNews(progress: TrackedProgress, before: TrackedProgress | undefined): boolean {
  if (progress.state !== before?.state) return true;
  if ("guid" in progress && "guid" in before && progress.guid !== before.guid) return true;
  return (
    "targetHash" in progress && "targetHash" in before && progress.targetHash !== before.targetHash
  );
}

/** The tokens' place, in a sentence. */
export function describeWhereabouts(progress: TrackedProgress): string {
  switch (progress.state) {
    case "pending":
      return `The transaction ${progress.hash} is in no block: the tokens are where they were, and may leave yet`;
    case "in_flight":
      return (
        `The tokens have left ${progress.sourceChain} in block ${progress.sourceBlock}` +
        ` and were not seen on ${progress.targetChain}${upTo(progress.searchedTo)}.` +
        ` They travel as LayerZero message ${progress.guid}, which does not get lost:` +
        ` track the same hash again, or look at https://layerzeroscan.com/tx/${progress.hash}`
      );
    case "received":
      return `${describeArrival(progress)}: not deep enough, or not confirmed by nodes of two hosts of each chain`;
    case "delivered":
      return describeArrival(progress);
  }
}

function describeArrival(arrival: Arrival): string {
  const { targetChain, targetHash, targetBlock, confirmations } = arrival;
  return `The tokens are on ${targetChain} since transaction ${targetHash} in block ${targetBlock}, with ${confirmations} confirmations`;
}

function upTo(block: bigint | undefined): string {
  return block === undefined ? "" : ` up to block ${block}`;
}
