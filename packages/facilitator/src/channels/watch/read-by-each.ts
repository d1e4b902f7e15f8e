import { blockByNumber, parseBlockHeader, RpcError, type RpcPool } from "@coinslot/chain";
import type { Address, Hex } from "@coinslot/protocol";
import { BaseError } from "viem";
import * as z from "zod";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import type { SettlementNetwork } from "../../settle/context.ts";
import { readBlock } from "./mirror-channels.ts";
import { isStateMissing, readChannels } from "./read-channels.ts";

/** Channels as one endpoint has them. */
export type ChannelVote = Map<Hex, ChannelReading>;

/**
 * Channels as each endpoint that answers has them, some blocks below its own head. A reading of the
 * pool is one node's word: a decision that cannot be taken back asks all of them. An endpoint that
 * does not answer, or lacks the state, has no vote.
 *
 * @throws what is no fault of a node
 */
export async function readByEach(
  { rpc, multicall3 }: Pick<SettlementNetwork, "rpc" | "multicall3">,
  { contract, ids, depth = 0 }: { contract: Address; ids: readonly Hex[]; depth?: number },
): Promise<ChannelVote[]> {
  const votes = await Promise.all(
    rpc.endpoints.map(async (endpoint) => {
      try {
        const block = await readOwn(endpoint, depth);
        return (
          block && (await readChannels({ rpc: endpoint, multicall3 }, { contract, ids, block }))
        );
      } catch (error) {
        const isNodeFault =
          error instanceof RpcError || error instanceof z.ZodError || isStateMissing(error);
        if (isNodeFault || error instanceof BaseError) return undefined;
        throw error;
      }
    }),
  );
  return votes.filter((vote) => vote !== undefined);
}

/** The block of an endpoint so far below its own head. */
async function readOwn(endpoint: RpcPool["endpoints"][number], depth: number) {
  const head = parseBlockHeader(await endpoint.request(blockByNumber("latest")));
  if (head === undefined) return undefined;
  const number = Number(head.number);
  if (depth === 0) return { number, hash: head.hash };
  return readBlock(endpoint, Math.max(0, number - depth));
}
