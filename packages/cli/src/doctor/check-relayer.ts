import { createChainClient, type RpcPool } from "@coinslot/chain";
import { checkRelayers, readFacilitatorOptions } from "@coinslot/facilitator";
import type { ConfiguredNetwork } from "@coinslot/hosting/environment";
import { formatMoney } from "@coinslot/protocol";
import type { LocalAccount } from "viem";
import { type Check, toChecks } from "./check.ts";

/** Usual gas of a single settlement; a batch takes less for each. */
const gasOfSettlement = 120_000n;
const nativeDecimals = 18;

/**
 * Checks that the relayer can pay for gas, and names the number of settlements at today's price.
 */
export async function checkRelayer(options: {
  network: ConfiguredNetwork;
  relayer: LocalAccount | undefined;
  pool: RpcPool;
}): Promise<Check[]> {
  const { network, relayer, pool } = options;
  const subject = { topic: "relayer", about: network.name } as const;
  if (relayer === undefined) {
    const found = "Not set: to sell, set FACILITATOR_SEED_PHRASE.";
    return [{ ...subject, status: "skipped", found }];
  }
  const { networks } = readFacilitatorOptions({
    networks: [{ network: network.network, rpcUrls: network.rpcUrls, relayer }],
    ledger: "sqlite::memory:",
  });
  const client = createChainClient(pool);
  const [findings, balance, gasPrice] = await Promise.all([
    checkRelayers(networks[0], pool),
    client.getBalance({ address: relayer.address }),
    client.getGasPrice(),
  ]);
  const cost = gasPrice * gasOfSettlement;
  const lasts = cost === 0n ? "any number of" : `about ${balance / cost}`;
  const coins = `${formatMoney(balance, nativeDecimals)} ${network.symbol}`;
  const enough = `${relayer.address} holds ${coins}: enough for ${lasts} settlements at today's price of gas`;
  return toChecks(subject, findings, enough);
}
