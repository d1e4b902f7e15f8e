import type { Devnet } from "@coinslot/devnet";
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import {
  type Chain,
  createNonceManager,
  createWalletClient,
  type Hex,
  http,
  publicActions,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { jsonRpc } from "viem/nonce";

/** The reference implementation's facilitator in the best configuration that we know of. */
export function createReferenceFacilitator(options: {
  rpcUrl: string;
  chain: Chain;
  network: Devnet["network"];
  privateKey: Hex;
}): x402Facilitator {
  const account = privateKeyToAccount(options.privateKey, {
    nonceManager: createNonceManager({ source: jsonRpc() }),
  });
  const client = createWalletClient({
    account,
    chain: options.chain,
    transport: http(options.rpcUrl, { batch: true }),
    pollingInterval: 20,
    cacheTime: 0,
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
  return new x402Facilitator().register(options.network, new ExactEvmScheme(signer));
}
