import { getChainPreset } from "@coinslot/chain";
import { type Address, findKnownToken, type Network, symbolOf } from "@coinslot/protocol";

/** A currency of the books, for people and for accounting programs. */
export interface Currency {
  /** Upper case, legal as a commodity: at most 24 letters, digits and dashes. */
  code: string;
  /** 0 where the token is not known: amounts are in its smallest unit. */
  decimals: number;
}

/** Currencies by network and token: an export asks for each row. */
const known = new Map<string, Currency>();

/** The currency of a token, or, without one, the native coin of the network. */
export function currencyOf(network: Network, asset: Address | undefined): Currency {
  const key = `${network}/${asset}`;
  const currency = known.get(key) ?? findCurrency(network, asset);
  known.set(key, currency);
  return currency;
}

function findCurrency(network: Network, asset: Address | undefined): Currency {
  const chainId = Number(network.slice(network.indexOf(":") + 1));
  if (asset === undefined) {
    const { symbol, decimals } = getChainPreset(chainId).nativeCurrency;
    // The preset of an unknown chain names no coin.
    const isKnown = symbol === symbol.toUpperCase();
    return { code: isKnown ? toCode(symbol) : `NATIVE-${chainId}`, decimals };
  }
  const token = findKnownToken(network, asset);
  if (token) return { code: toCode(symbolOf(token)), decimals: token.decimals };
  return { code: `UNITS-${asset.slice(2, 14).toUpperCase()}`, decimals: 0 };
}

function toCode(symbol: string): string {
  return symbol
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, "-")
    .replace(/^[^A-Z]+|-+$/g, "")
    .slice(0, 24);
}
