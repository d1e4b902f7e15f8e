import type { Devnet } from "@coinslot/devnet";
import { x402Client } from "@x402/core/client";
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme as ExactEvmClient } from "@x402/evm/exact/client";
import { ExactEvmScheme as ExactEvmFacilitator } from "@x402/evm/exact/facilitator";
import { wrapFetchWithPayment } from "@x402/fetch";
import { createWalletClient, http, type LocalAccount, publicActions } from "viem";

/** The reference implementation's facilitator in this process, with an account of the devnet that pays gas. */
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
  return new x402Facilitator().register(devnet.network, new ExactEvmFacilitator(signer));
}

/** The reference implementation's fetch that pays, allowed to spend any asset. */
export function createReferenceFetch(devnet: Devnet, account: LocalAccount): typeof fetch {
  const client = new x402Client().setSpendControls(false);
  client.register(devnet.network, new ExactEvmClient(account));
  return wrapFetchWithPayment(fetch, client);
}
