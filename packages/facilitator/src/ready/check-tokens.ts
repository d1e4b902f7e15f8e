import type { RpcRequester } from "@coinslot/chain";
import { type Address, type Asset, isSameAddress } from "@coinslot/protocol";
import type { NetworkConfiguration } from "../configuration/facilitator-configuration.ts";
import { compareDomain } from "../token/compare-domain.ts";
import { readTokenFacts, type TokenFacts } from "../token/token-facts.ts";
import type { Findings } from "./findings.ts";

/**
 * Checks the tokens that a network is configured with: code, EIP-3009, EIP-712 domain. The
 * network's usual token is checked too. Where it was not asked for by name, a fault of it is only a
 * warning.
 *
 * @throws FacilitatorError when the chain is unreachable.
 */
export async function checkTokens(
  configuration: Pick<NetworkConfiguration, "network" | "assets" | "domains">,
  rpc: RpcRequester,
): Promise<Findings> {
  const { assets, domains } = configuration;
  const looked = await Promise.all(
    tokensOf(configuration).map(async (token) => {
      const faults = findFaults(configuration, token, await readTokenFacts(rpc, token.address));
      return faults.map((fault) => `The token ${token.address} ${fault}.`);
    }),
  );
  const isConfigured = assets !== undefined;
  const faults = looked.flat();
  if (isConfigured || domains.length === 0) return { problems: faults, warnings: [] };
  return { problems: [], warnings: faults };
}

interface Token {
  address: Address;
  domain: Asset | undefined;
}

function tokensOf({ assets, domains }: Pick<NetworkConfiguration, "assets" | "domains">): Token[] {
  const addresses = assets ?? domains.map(({ address }) => address);
  return addresses.map((address) => {
    const domain = domains.find((asset) => isSameAddress(asset.address, address));
    return { address: domain?.address ?? address, domain };
  });
}

/** Faults of a token, each as the rest of a sentence. */
function findFaults(
  { network }: Pick<NetworkConfiguration, "network">,
  { address, domain }: Token,
  facts: TokenFacts,
): string[] {
  if (!facts.hasCode) {
    return [`has no contract at its address on ${network}. Correct assets or network`];
  }
  if (!facts.hasAuthorizations) {
    return ["has no EIP-3009 transfers (authorizationState is missing), so it cannot be paid with"];
  }
  if (domain === undefined) return [];
  const comparison = compareDomain({ network, asset: address, domain }, facts);
  switch (comparison.result) {
    case "same":
      return [];
    case "unknown":
      return [
        `does not sign under name "${domain.name}" and version "${domain.version}", and does not return its own: ask its issuer`,
      ];
    case "differs": {
      const { name, version } = comparison;
      return [
        ...(name === undefined
          ? []
          : [`signs under the name "${name}", not "${domain.name}": correct its name`]),
        ...(version === undefined
          ? []
          : [`signs under the version "${version}", not "${domain.version}": correct its version`]),
      ];
    }
  }
}
