import {
  blockByNumber,
  parseBlockHeader,
  type RpcRequester,
  RpcResponseError,
} from "@coinslot/chain";
import type { KnownBlock } from "../../ledger/transactions/undo-blocks.ts";

/**
 * Splits blocks into three: the chain still has them, it has others in their place, or a node
 * refuses to show them (pruned). A node without a height yet proves nothing: such a block is in
 * none of them.
 *
 * @throws RpcError when the chain is unreachable
 */
export async function compareBlocks(
  rpc: RpcRequester,
  blocks: readonly KnownBlock[],
): Promise<{ present: KnownBlock[]; absent: KnownBlock[]; refused: KnownBlock[] }> {
  const present: KnownBlock[] = [];
  const absent: KnownBlock[] = [];
  const refused: KnownBlock[] = [];
  const outcomes = await rpc.requestMany(blocks.map(({ number }) => blockByNumber(BigInt(number))));
  for (const [index, block] of blocks.entries()) {
    const outcome = outcomes[index];
    if (outcome && !outcome.ok) {
      if (!(outcome.error instanceof RpcResponseError)) throw outcome.error;
      refused.push(block);
      continue;
    }
    const header = parseBlockHeader(outcome?.result ?? null);
    if (header === undefined) continue;
    (header.hash.toLowerCase() === block.hash ? present : absent).push(block);
  }
  return { present, absent, refused };
}
