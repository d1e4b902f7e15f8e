import { createRpcPool, RpcError, type RpcPool } from "@coinslot/chain";
import { checkTokens } from "@coinslot/facilitator";
import type { ConfiguredNetwork } from "@coinslot/hosting/environment";
import { FacilitatorError, symbolOf } from "@coinslot/protocol";
import type { LocalAccount } from "viem";
import { type Check, toChecks } from "./check.ts";
import { checkChannels } from "./check-channels.ts";
import { checkClock } from "./check-clock.ts";
import { checkEndpoints } from "./check-endpoints.ts";
import { checkRecipient, type Recipient } from "./check-recipient.ts";
import { checkRelayer } from "./check-relayer.ts";

/**
 * All checks of a network's chain: endpoints, chain id, tokens, the relayer's gas money, the time,
 * contracts of payment channels.
 */
export async function checkNetwork(options: {
  network: ConfiguredNetwork;
  relayer: LocalAccount | undefined;
  /** `undefined` where no recipient or no ledger is named. */
  recipient: Recipient | undefined;
  /** Unix milliseconds. */
  now: () => number;
}): Promise<Check[]> {
  const { network, relayer, recipient, now } = options;
  const endpoints = await checkEndpoints(network);
  if (endpoints.usable.length === 0) return endpoints.checks;
  const pool = createRpcPool({ chainId: network.chainId, rpcUrls: endpoints.usable });
  try {
    const others = await Promise.all([
      lookAtTokens(network, pool),
      checkRelayer({ network, relayer, pool }),
      checkClock({ network, pool, now }),
      checkChannels({ network, pool }),
      recipient ? checkRecipient({ network, assets: assetsOf(network), pool, recipient }) : [],
    ]);
    return [...endpoints.checks, ...others.flat()];
  } catch (error) {
    if (!(error instanceof RpcError || error instanceof FacilitatorError)) throw error;
    const found = `It cannot be read: ${error.message}. Try another endpoint.`;
    return [...endpoints.checks, { topic: "rpc", about: network.name, status: "broken", found }];
  } finally {
    pool.close();
  }
}

function domainsOf({ knownToken, tokens }: ConfiguredNetwork) {
  const described = tokens.filter((token) => typeof token !== "string");
  return knownToken ? [knownToken, ...described] : described;
}

function assetsOf(network: ConfiguredNetwork) {
  const named = network.tokens.filter((token) => typeof token === "string");
  return [...domainsOf(network).map(({ address }) => address), ...named];
}

async function lookAtTokens(network: ConfiguredNetwork, pool: RpcPool): Promise<Check[]> {
  const { knownToken, name } = network;
  const domains = domainsOf(network);
  const assets = assetsOf(network);
  const subject = { topic: "token", about: name } as const;
  if (assets.length === 0) {
    const found = "The network has no known token: add yours to COINSLOT_TOKENS to check it.";
    return [{ ...subject, status: "skipped", found }];
  }
  const findings = await checkTokens({ network: network.network, assets, domains }, pool);
  const accepted = knownToken
    ? `${symbolOf(knownToken)} has the expected domain`
    : "EIP-3009 is there";
  return toChecks(subject, findings, `${accepted} (${assets.join(", ")})`);
}
