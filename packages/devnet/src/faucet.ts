import type { Address, Hex, TransactionReceipt } from "viem";
import type { DevnetClient } from "./devnet-client.ts";

/** Sends the devnet's own transactions; resolves when mined, and rejects if it reverts. */
export type Faucet = (transaction: { to?: Address; data?: Hex }) => Promise<TransactionReceipt>;

/**
 * Sends from an account that only the devnet uses, so that it never takes a nonce from a test. The
 * chain signs for the account and counts its nonces, which stays right over reorganisations and
 * snapshots. It would give one nonce to two concurrent requests, so transactions are sent in turn.
 * They may still share a block.
 */
export function createFaucet(client: DevnetClient, account: Address): Faucet {
  let last: Promise<unknown> = Promise.resolve();

  return async function send(transaction) {
    // As one call: viem's action asks for the chain's id before each transaction.
    const sent = last.then(() =>
      client.request({
        method: "eth_sendTransaction",
        params: [{ from: account, ...transaction }],
      }),
    );
    last = sent.catch(() => undefined);
    const receipt = await client.waitForTransactionReceipt({ hash: await sent });
    if (receipt.status === "reverted")
      throw new Error(`Transaction ${receipt.transactionHash} reverted.`);
    return receipt;
  };
}
