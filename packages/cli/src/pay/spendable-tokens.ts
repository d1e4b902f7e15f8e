import { createChainClient, createRpcPool } from "@coinslot/chain";
import type { Budget, BudgetAsset } from "@coinslot/client";
import { type Asset, isSameAddress, type Network, parseMoney } from "@coinslot/protocol";
import { UsageError } from "../exit-code.ts";
import type { ConfiguredNetwork } from "../networks.ts";
import { readToken } from "../read-token.ts";

/** A token that may be spent. */
export interface SpendableToken extends Asset {
  network: Network;
}

/**
 * The tokens that may be spent: the known stablecoin of each network, and those that the environment
 * names, whose decimals and domain their own contracts tell.
 *
 * @throws when a chain cannot be asked about a token
 */
export async function readSpendableTokens(
  networks: readonly ConfiguredNetwork[],
): Promise<SpendableToken[]> {
  const perNetwork = await Promise.all(
    networks.map(async ({ network, chainId, name, rpcUrls, knownToken, tokens }) => {
      const known = knownToken ? [{ network, ...knownToken }] : [];
      const others = tokens.filter(
        (address) => !(knownToken && isSameAddress(knownToken.address, address)),
      );
      if (others.length === 0) return known;
      const pool = createRpcPool({ chainId, rpcUrls });
      try {
        const client = createChainClient(pool);
        const read = await Promise.all(
          others.map((address) =>
            readToken(client, address).catch((cause: unknown) => {
              const token = `The token ${address} on ${name}, which COINSLOT_TOKENS names,`;
              throw new Error(`${token} cannot be read: coinslot doctor says why`, { cause });
            }),
          ),
        );
        return [...known, ...read.map((token) => ({ network, ...token }))];
      } finally {
        pool.close();
      }
    }),
  );
  return perNetwork.flat();
}

/** A budget for one payment of at most so many whole tokens. */
export function toBudget(tokens: readonly SpendableToken[], maxPrice: string): Budget {
  const assets = tokens.map((token): BudgetAsset => {
    const most = parseMoney(maxPrice, token.decimals);
    if (most === undefined) {
      throw new UsageError(
        `--max-price has more than the ${token.decimals} decimals of ${token.name}.`,
      );
    }
    return { ...token, limits: { perPayment: most, perHost: most, perDay: most } };
  });
  return { assets };
}
