import { blockByNumber, RpcError, type RpcRequester } from "@coinslot/chain";
import { bytes32Schema, type Hex, type Network, toLowerHex } from "@coinslot/protocol";
import type { Database } from "@coinslot/storage";
import * as z from "zod";
import { keepGenesis } from "../ledger/maintenance/keep-genesis.ts";
import type { LedgerSchema } from "../ledger/schema.ts";
import type { Chain } from "../open-chain.ts";

/**
 * Compares each chain with the one that the ledger's payments are on, by the hash of its first
 * block. A development chain that was started anew has the same id, and none of the payments.
 *
 * @returns a problem for each network whose chain is another one
 */
export async function checkGenesis(
  database: Database<LedgerSchema>,
  chains: readonly Chain[],
): Promise<string[]> {
  const problems: string[] = [];
  for (const { configuration, pool } of chains) {
    const { network } = configuration;
    const hash = await readGenesis(pool);
    if (hash === undefined) continue;
    const kept = await keepGenesis(database, { network, hash });
    if (kept !== hash) problems.push(describe(network, { hash, kept }));
  }
  return problems;
}

function describe(network: Network, { hash, kept }: { hash: Hex; kept: Hex }): string {
  return `${network} is not the chain of the ledger's payments: it begins with the block ${hash}, and theirs with ${kept}. Was a development chain started anew? Give it a new ledger, or start it with its former state.`;
}

const blockSchema = z.object({ hash: bytes32Schema });

/** `undefined` where the endpoints do not keep the first block. */
async function readGenesis(rpc: RpcRequester): Promise<Hex | undefined> {
  try {
    const block = blockSchema.safeParse(await rpc.request(blockByNumber(0n)));
    return block.success ? toLowerHex(block.data.hash) : undefined;
  } catch (error) {
    if (error instanceof RpcError) return undefined;
    throw error;
  }
}
