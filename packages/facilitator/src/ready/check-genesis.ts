import { blockByNumber, RpcError, type RpcPool, type RpcRequester } from "@coinslot/chain";
import { bytes32Schema, type Hex, type Network, toLowerHex } from "@coinslot/protocol";
import type { Database } from "@coinslot/storage";
import * as z from "zod";
import { keepGenesis } from "../ledger/maintenance/keep-genesis.ts";
import type { LedgerSchema } from "../ledger/schema.ts";
import type { Logger } from "../logger.ts";
import type { Chain } from "../open-chain.ts";

/**
 * Compares each chain with the one that the ledger's payments are on, by the hash of its first
 * block. A development chain that was started anew has the same id, and none of the payments.
 *
 * Each endpoint is asked. One that shows the ledger's chain is enough: else another one could end
 * each start. The others are logged. A hash is kept only where all that answer agree.
 *
 * @returns a problem for each network whose chain is another one, or not known
 */
export async function checkGenesis(
  database: Database<LedgerSchema>,
  chains: readonly Pick<Chain, "configuration" | "pool">[],
  logger: Logger,
): Promise<string[]> {
  const read = chains.map(async ({ configuration: { network }, pool }) => ({
    network,
    shown: await readByEach(pool),
  }));
  const problems: string[] = [];
  for (const { network, shown } of await Promise.all(read)) {
    const hashes = [...new Set(shown.map(({ hash }) => hash))];
    if (hashes.length === 0) continue;
    const kept = await keepGenesis(database, { network, hashes });
    if (kept === undefined) problems.push(describeSplit(network, hashes));
    else if (!hashes.includes(kept)) problems.push(describe(network, { hashes, kept }));
    else {
      for (const { endpoint, hash } of shown.filter((each) => each.hash !== kept)) {
        const facts = { network, endpoint, hash, kept };
        logger.error(facts, "An endpoint shows another first block than the ledger's chain has");
      }
    }
  }
  return problems;
}

function describe(
  network: Network,
  { hashes, kept }: { hashes: readonly Hex[]; kept: Hex },
): string {
  return `${network} is not the chain of the ledger's payments: it begins with the block ${hashes.join(" or ")}, and theirs with ${kept}. Was a development chain started anew? Give it a new ledger, or start it with its former state.`;
}

function describeSplit(network: Network, hashes: readonly Hex[]): string {
  return `${network}: its endpoints show different chains, which begin with the blocks ${hashes.join(" and ")}. Remove those of another chain from rpcUrls.`;
}

/** The first block as an endpoint shows it. */
interface Shown {
  /** Its number, counted from 1. */
  endpoint: number;
  hash: Hex;
}

/** Those that do not answer, or do not keep the first block, are left out. */
async function readByEach({ endpoints, ...pool }: RpcPool): Promise<Shown[]> {
  const [first, ...others] = endpoints;
  if (first === undefined) return [];
  // The pool asks again after a moment's fault.
  const nodes = others.length === 0 ? [{ ...pool, endpoint: first.endpoint }] : endpoints;
  const all = nodes.map(async (node) => {
    const hash = await readGenesis(node);
    return hash === undefined ? [] : [{ endpoint: node.endpoint, hash }];
  });
  return (await Promise.all(all)).flat();
}

const blockSchema = z.object({ hash: bytes32Schema });

async function readGenesis(rpc: RpcRequester): Promise<Hex | undefined> {
  try {
    const block = blockSchema.safeParse(await rpc.request(blockByNumber(0n)));
    return block.success ? toLowerHex(block.data.hash) : undefined;
  } catch (error) {
    if (error instanceof RpcError) return undefined;
    throw error;
  }
}
