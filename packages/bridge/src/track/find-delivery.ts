import {
  type Address,
  getAbiItem,
  type Hash,
  type Hex,
  isAddressEqual,
  type PublicClient,
} from "viem";
import { askChain } from "../chains/ask-chain.ts";
import { findNodeAnswer } from "../chains/node-answer.ts";
import { oftAbi } from "../chains/oft-abi.ts";

/** An OFT's event for a transfer that has arrived. */
export interface Delivery {
  targetHash: Hash;
  targetBlock: bigint;
  /** The target block and those on top of it. */
  confirmations: number;
  recipient: Address;
  amountReceived: bigint;
}

/** Searches for one message on its target chain, and remembers the searched range. */
export interface DeliveryFinder {
  /**
   * `undefined`: it is in no block up to now, or the search was no longer wanted. The next call
   * resumes it from there.
   *
   * @throws BridgeError `rpc_unavailable`
   */
  find(): Promise<Delivery | undefined>;
  /** The newest searched block. */
  head(): bigint | undefined;
}

const oftReceived = getAbiItem({ abi: oftAbi, name: "OFTReceived" });

/** Most blocks in one question. Where a node takes fewer, it is halved until the node answers. */
const maxBlocks = 2_000n;

/**
 * Creates a finder.
 *
 * @param options.contract the OFT on the target chain
 * @param options.rescan number of the newest blocks to search again each time, since they may have
 * been replaced
 * @param options.isWanted checked within a long search, after each answer
 */
export function createDeliveryFinder(options: {
  client: PublicClient;
  contract: Address;
  guid: Hex;
  fromBlock: bigint;
  rescan: bigint;
  isWanted: () => boolean;
}): DeliveryFinder {
  const { client, contract, guid, fromBlock, rescan, isWanted } = options;
  let next = fromBlock;
  let head: bigint | undefined;
  let span = maxBlocks;

  async function readLogs(from: bigint, to: bigint) {
    const filter = { address: contract, event: oftReceived, args: { guid }, strict: true } as const;
    try {
      return await client.getLogs({ ...filter, fromBlock: from, toBlock: to });
    } catch (error) {
      if (to > from && findNodeAnswer(error) !== undefined) return undefined;
      return askChain("the logs of the target chain", Promise.reject(error));
    }
  }

  return {
    head: () => head,
    async find() {
      const newest = await askChain(
        "the newest block of the target chain",
        client.getBlockNumber({ cacheTime: 0 }),
      );
      while (next <= newest) {
        const last = min(next + span - 1n, newest);
        const logs = await readLogs(next, last);
        if (logs === undefined) {
          span = (last - next + 1n) / 2n;
          continue;
        }
        // A node that answers for more than it was asked is not believed.
        head = last;
        const log = logs.find(({ address }) => isAddressEqual(address, contract));
        if (log !== undefined) {
          return {
            targetHash: log.transactionHash,
            targetBlock: log.blockNumber,
            confirmations: Number(newest - log.blockNumber) + 1,
            recipient: log.args.toAddress,
            amountReceived: log.args.amountReceivedLD,
          };
        }
        next = last + 1n;
        if (next <= newest && !isWanted()) return undefined;
      }
      const again = newest + 1n - rescan;
      next = again > fromBlock ? again : fromBlock;
      return undefined;
    },
  };
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
