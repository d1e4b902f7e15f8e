import { existsSync } from "node:fs";
import { readIndexerServiceConfiguration } from "@coinslot/hosting";
import {
  createIndexer,
  createIndexerClient,
  createTransferService,
  devnetChain,
  indexerChain,
  isIndexerChainName,
  readConfiguration,
  type TransferService,
} from "@coinslot/indexer";
import { type Address, type Network, toLowerHex } from "@coinslot/protocol";
import { databaseFileOf } from "@coinslot/storage";
import { UsageError } from "../exit-code.ts";
import { readServiceKey } from "../read-secret.ts";
import type { Terminal } from "../terminal.ts";
import type { IndexedToken } from "./index-source.ts";

/** The verified tokens of one network in an index. */
export interface IndexedNetwork {
  service: TransferService;
  tokens: ReadonlyMap<Address, IndexedToken>;
  /** The last block up to which all of them were read twice, or proven. */
  verifiedTo: number;
}

/** An index to compare with. */
export interface OpenIndex {
  find(network: Network): IndexedNetwork | undefined;
  close(): Promise<void>;
}

/** A chain and its tokens, by their names in the index. */
interface NamedChain {
  name: string;
  chainId: number;
  tokens: readonly { name: string; address: string }[];
}

/**
 * Opens the index that the environment names: that of a service in INDEXER_URL, or the one of this
 * machine, whose service may run meanwhile. Undefined where there is none.
 */
export async function openIndex(
  terminal: Pick<Terminal, "env" | "envFile">,
): Promise<OpenIndex | undefined> {
  const { env } = terminal;
  const url = env.INDEXER_URL?.trim() || undefined;
  if (url !== undefined) {
    if (!/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : ""))
      throw new UsageError("INDEXER_URL must begin with http:// or https://.");
    const apiKey = readServiceKey(terminal, "INDEXER_API_KEY", { url: "INDEXER_URL" });
    const client = createIndexerClient({ url, apiKey });
    return describe(client, await findServed(client), async () => undefined);
  }
  if (!env.INDEXER_CHAINS?.trim() && !env.INDEXER_CONFIG?.trim()) return undefined;
  const { indexer: input } = readIndexerServiceConfiguration({ env });
  const { database, chains } = readConfiguration(input);
  const path = databaseFileOf(database);
  // To look into an index is no reason to make one.
  if (path !== undefined && !existsSync(path)) return undefined;
  const indexer = createIndexer(input);
  try {
    await indexer.ready();
    return await describe(createTransferService(indexer), chains, indexer.close);
  } catch (error) {
    await indexer.close();
    throw error;
  }
}

/** The chains of a service whose names are known. Its API names no addresses of tokens. */
async function findServed(service: TransferService): Promise<NamedChain[]> {
  const { chains } = await service.listChains();
  return chains.flatMap(({ name, tokens }) => {
    const known = presetOf(name);
    const served = known?.tokens.filter((token) => tokens.includes(token.name)) ?? [];
    return known === undefined ? [] : [{ name, chainId: known.chainId, tokens: served }];
  });
}

function presetOf(name: string) {
  if (name === "devnet") return devnetChain({ rpcUrls: [] });
  return isIndexerChainName(name) ? indexerChain(name, { rpcUrls: [] }) : undefined;
}

async function describe(
  service: TransferService,
  chains: readonly NamedChain[],
  close: () => Promise<void>,
): Promise<OpenIndex> {
  const { checks } = await service.getHealth();
  const networks = new Map<string, IndexedNetwork>();
  for (const { name, chainId, tokens } of chains) {
    const verified = tokens.flatMap((token) => {
      const { verifiedTo } = checks.indexers[`${name}:${token.name}`] ?? {};
      return verifiedTo === undefined ? [] : [{ ...token, verifiedTo }];
    });
    if (verified.length === 0) continue;
    networks.set(`eip155:${chainId}`, {
      service,
      tokens: new Map(
        verified.map((token) => [
          toLowerHex(hexOf(token.address)),
          { blockchain: name, token: token.name },
        ]),
      ),
      verifiedTo: Math.min(...verified.map(({ verifiedTo }) => verifiedTo)),
    });
  }
  return { find: (network) => networks.get(network), close };
}

function hexOf(address: string): Address {
  return `0x${address.replace(/^0x/, "")}`;
}
