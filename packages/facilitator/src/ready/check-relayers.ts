import { getChainPreset, type RpcRequester } from "@coinslot/chain";
import { FacilitatorError } from "@coinslot/protocol";
import { formatUnits } from "viem";
import * as z from "zod";
import type { NetworkConfiguration } from "../configuration/facilitator-configuration.ts";
import type { Findings } from "./findings.ts";

const quantitySchema = z
  .string()
  .regex(/^0x[0-9a-fA-F]{1,64}$/)
  .transform((text) => BigInt(text));

/**
 * Checks whether relayers can pay for gas. One that can is enough. The others become warnings.
 *
 * @throws RpcError or FacilitatorError when the chain is unreachable.
 */
export async function checkRelayers(
  configuration: NetworkConfiguration,
  rpc: RpcRequester,
): Promise<Findings> {
  const { relayers, minimumBalance, warningBalance, network, chainId } = configuration;
  const { symbol, decimals } = getChainPreset(chainId).nativeCurrency;
  const inCoins = (amount: bigint) => `${formatUnits(amount, decimals)} ${symbol}`;
  const balances = await Promise.all(
    relayers.map(async ({ address }) => {
      const answer = await rpc.request({ method: "eth_getBalance", params: [address, "latest"] });
      const balance = quantitySchema.safeParse(answer);
      if (!balance.success) {
        throw new FacilitatorError("The chain returned a malformed balance", {
          kind: "bad_response",
        });
      }
      return { address, balance: balance.data };
    }),
  );
  const poor = balances
    .filter(({ balance }) => balance < minimumBalance)
    .map(
      ({ address, balance }) =>
        `The relayer ${address} holds ${inCoins(balance)} on ${network}, and needs at least ${inCoins(minimumBalance)} for gas: send it some.`,
    );
  const low = balances
    .filter(({ balance }) => balance >= minimumBalance && balance < warningBalance)
    .map(
      ({ address, balance }) =>
        `The relayer ${address} holds only ${inCoins(balance)} on ${network}: send it some soon.`,
    );
  const nobodyCanPay = poor.length === balances.length;
  return nobodyCanPay
    ? { problems: poor, warnings: [] }
    : { problems: [], warnings: [...poor, ...low] };
}
