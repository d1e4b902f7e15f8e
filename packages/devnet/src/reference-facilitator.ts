import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { createWalletClient, defineChain, http, type LocalAccount, publicActions } from "viem";
import type { Devnet } from "./devnet.ts";

type ReferenceSigner = ReturnType<typeof toFacilitatorEvmSigner>;

/**
 * The reference implementation's facilitator in this process, in its best known configuration.
 *
 * @param chain a devnet, or its description in another process
 * @param account pays the gas; with a nonce manager it may send several transactions at a time
 */
export function createReferenceFacilitator(
  chain: Pick<Devnet, "chainId" | "network" | "rpcUrl">,
  account: LocalAccount,
): x402Facilitator {
  const scheme = new ExactEvmScheme(createReferenceSigner(chain, account));
  return new x402Facilitator().register(chain.network, scheme);
}

/** Signer and sender of the reference implementation's facilitators. */
export function createReferenceSigner(
  chain: Pick<Devnet, "chainId" | "rpcUrl">,
  account: LocalAccount,
): ReferenceSigner {
  const client = createWalletClient({
    account,
    chain: defineChain({
      id: chain.chainId,
      name: "Devnet",
      nativeCurrency: { name: "Gas", symbol: "GAS", decimals: 18 },
      rpcUrls: { default: { http: [chain.rpcUrl] } },
    }),
    transport: http(chain.rpcUrl, { batch: true }),
    pollingInterval: 20,
    cacheTime: 0,
  }).extend(publicActions);
  return toFacilitatorEvmSigner({
    address: account.address,
    getCode: client.getCode,
    readContract: (args) => client.readContract({ ...args, args: args.args ?? [] }),
    sendTransaction: client.sendTransaction,
    verifyTypedData: (args) =>
      client.verifyTypedData(args as Parameters<typeof client.verifyTypedData>[0]),
    waitForTransactionReceipt: client.waitForTransactionReceipt,
    writeContract: (args) => client.writeContract({ ...args, args: args.args }),
  });
}
