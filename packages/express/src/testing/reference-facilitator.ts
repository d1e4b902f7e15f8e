import type { Devnet } from "@coinslot/devnet";
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { createWalletClient, http, type LocalAccount, publicActions } from "viem";

/** The reference implementation's facilitator in this process, with an account that pays gas. */
export function createReferenceFacilitator(devnet: Devnet, account: LocalAccount): x402Facilitator {
  const client = createWalletClient({
    account,
    chain: devnet.client.chain,
    transport: http(devnet.rpcUrl),
    pollingInterval: 50,
  }).extend(publicActions);
  const signer = toFacilitatorEvmSigner({
    address: account.address,
    getCode: client.getCode,
    readContract: (args) => client.readContract({ ...args, args: args.args ?? [] }),
    sendTransaction: client.sendTransaction,
    verifyTypedData: (args) =>
      client.verifyTypedData(args as Parameters<typeof client.verifyTypedData>[0]),
    waitForTransactionReceipt: client.waitForTransactionReceipt,
    writeContract: (args) => client.writeContract({ ...args, args: args.args }),
  });
  return new x402Facilitator().register(devnet.network, new ExactEvmScheme(signer));
}
