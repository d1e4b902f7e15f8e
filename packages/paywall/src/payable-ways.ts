import {
  chainIdOf,
  describePrice,
  findKnownChain,
  type PaymentRequirements,
} from "@coinslot/protocol";
import type { PayableWay, WalletChain } from "./page-data.ts";
import type { PaywallSettings } from "./paywall-options.ts";

/** The ways of an offer that a wallet can sign: EIP-3009, with a domain. */
export function payableWays(
  accepts: readonly PaymentRequirements[],
  settings: PaywallSettings,
): PayableWay[] {
  return accepts.filter(isPayable).map((accepted) => {
    const { network } = accepted;
    const { amount, symbol, decimals, networkName } = describePrice(accepted);
    const chain = chainOf(network, settings);
    const [explorer] = chain?.blockExplorerUrls ?? [];
    return {
      accepted,
      price: `${amount} ${symbol}`,
      symbol,
      decimals,
      chainId: Number(chainIdOf(network)),
      networkName: chain?.chainName ?? networkName,
      chain,
      explorer: explorer === undefined ? undefined : `${explorer.replace(/\/+$/, "")}/tx/{hash}`,
    };
  });
}

function isPayable({ scheme, extra = {} }: PaymentRequirements): boolean {
  const { name, version, assetTransferMethod = "eip3009" } = extra;
  const hasDomain = typeof name === "string" && typeof version === "string";
  return scheme === "exact" && hasDomain && assetTransferMethod === "eip3009";
}

function chainOf(
  network: PaymentRequirements["network"],
  { chains = {} }: PaywallSettings,
): WalletChain | undefined {
  const own = Object.hasOwn(chains, network) ? chains[network] : undefined;
  if (own !== undefined) {
    const { name, nativeCurrency, rpcUrls, explorer } = own;
    return {
      chainName: name,
      nativeCurrency,
      rpcUrls,
      ...(explorer === undefined ? {} : { blockExplorerUrls: [explorer] }),
    };
  }
  const known = findKnownChain(network);
  if (known === undefined) return undefined;
  return {
    chainName: known.name,
    nativeCurrency: known.nativeCurrency,
    rpcUrls: [known.publicRpcUrl],
    blockExplorerUrls: [known.explorerUrl],
  };
}
