import type { Budget, BudgetAsset } from "@coinslot/client";
import type { ConfiguredNetwork } from "@coinslot/hosting/environment";
import { type Asset, isSameAddress, type Network, parseMoney, symbolOf } from "@coinslot/protocol";
import { agreeOnToken } from "../agree-on-token.ts";
import { UsageError } from "../exit-code.ts";

/** A token that may be spent. */
export interface SpendableToken extends Asset {
  network: Network;
}

/**
 * The tokens that may be spent: the known stablecoin of each network, and those that the
 * environment names. `agreeOnToken` decides on the source of their decimals.
 *
 * @throws UsageError when only one node knows a token; Error when no node answers about one
 */
export async function readSpendableTokens(
  networks: readonly ConfiguredNetwork[],
): Promise<SpendableToken[]> {
  const perNetwork = await Promise.all(
    networks.map(async (configured) => {
      const { network, knownToken, tokens } = configured;
      const known = knownToken ? [{ network, ...knownToken }] : [];
      const read = await Promise.all(tokens.map((token) => agreeOnToken(configured, token)));
      const others = read.filter((token) => !isSame(token, knownToken));
      return [...known, ...others.map((token) => ({ network, ...token }))];
    }),
  );
  return perNetwork.flat();
}

function isSame(token: Asset, other: Asset | undefined): boolean {
  return other !== undefined && isSameAddress(token.address, other.address);
}

/**
 * A budget for one payment, with a maximum in whole tokens. With a deposit, the price has room
 * twice: a voucher of an earlier run, whose answer was lost, may turn out as charged.
 */
export function toBudget(
  tokens: readonly SpendableToken[],
  maxPrice: string,
  maxDeposit?: string,
): Budget {
  const assets = tokens.map((token): BudgetAsset => {
    const most = parseMoney(maxPrice, token.decimals);
    if (most === undefined) {
      throw new UsageError(
        `--max-price has more than the ${token.decimals} decimals of ${symbolOf(token)}.`,
      );
    }
    if (maxDeposit === undefined) {
      return { ...token, limits: { perPayment: most, perHost: most, perDay: most } };
    }
    const deposit = parseMoney(maxDeposit, token.decimals) ?? 0n;
    const locked = { perHost: deposit, inAll: deposit };
    const limits = { perPayment: most, perHost: 2n * most, perDay: 2n * most, locked };
    return { ...token, limits };
  });
  return { assets };
}
