import { type Address, type Network, networkOf } from "@coinslot/protocol";
import { createTestClient, erc20Abi, http, publicActions, walletActions } from "viem";
import { isDevelopmentNode, isLoopbackHost } from "../local-node.ts";

/** A replay is not made; the message says why in plain words. */
export class ReplayRefusedError extends Error {
  override readonly name = "ReplayRefusedError";
}

/** A chain of this machine. */
export interface LocalChain {
  network: Network;
  /** Moves tokens from an account without its key. */
  fund(transfer: { token: Address; from: Address; to: Address; amount: bigint }): Promise<void>;
}

/**
 * Opens a chain of this machine: a development node at a loopback address. A loopback address alone
 * may be a tunnel to the node of a real chain.
 *
 * @throws ReplayRefusedError for any other node
 */
export async function openLocalChain(rpcUrl: string): Promise<LocalChain> {
  const url = URL.canParse(rpcUrl) ? new URL(rpcUrl) : undefined;
  if (url === undefined || !isLoopbackHost(url.hostname)) {
    throw new ReplayRefusedError(
      "A replay needs a node of this machine: the RPC URL leads elsewhere.",
    );
  }
  const client = connect(rpcUrl);
  const asked: unknown = await client.transport
    .request({ method: "web3_clientVersion" })
    .catch(() => undefined);
  if (typeof asked !== "string")
    throw new ReplayRefusedError("The node of the local chain does not answer.");
  if (!isDevelopmentNode(asked)) {
    throw new ReplayRefusedError(
      "The node is no anvil and no hardhat: it may serve a real chain, where a replay would pay.",
    );
  }
  const network = networkOf(await client.getChainId());
  return {
    network,
    async fund({ token, from, to, amount }) {
      const balance = await client
        .readContract({ address: token, abi: erc20Abi, functionName: "balanceOf", args: [from] })
        .catch(() => 0n);
      if (balance < amount) {
        const text = `The recorded payer ${from} holds too few tokens on this chain: mint ${amount} units to it.`;
        throw new ReplayRefusedError(text);
      }
      await client.impersonateAccount({ address: from });
      await client.setBalance({ address: from, value: 10n ** 18n });
      const hash = await client.writeContract({
        account: from,
        chain: null,
        address: token,
        abi: erc20Abi,
        functionName: "transfer",
        args: [to, amount],
      });
      await client.waitForTransactionReceipt({ hash, pollingInterval: 100 });
      await client.stopImpersonatingAccount({ address: from });
    },
  };
}

function connect(rpcUrl: string) {
  const transport = http(rpcUrl, { timeout: 5_000, retryCount: 0 });
  return createTestClient({ mode: "anvil", transport }).extend(publicActions).extend(walletActions);
}
