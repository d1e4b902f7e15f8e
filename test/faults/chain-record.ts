import type { Devnet } from "@coinslot/devnet";
import { eip3009Abi, toLowerHex } from "@coinslot/protocol";
import { type Address, type Hex, isAddressEqual, parseEventLogs } from "viem";
import type { Purchase } from "./purchase.ts";

/** The canonical chain's record, read from the node itself. */
export interface ChainRecord {
  /** Transactions that executed the authorization with its exact transfer; one, or none. */
  executionsOf(purchase: Purchase): readonly Hex[];
  /** Number of transfers from its payer to the seller on the chain. */
  transfersToSeller(payer: Address): number;
  /** Transfers of an account that its authorizations made, by nonce in lower case. */
  authorizedBy(account: Address): ReadonlyMap<string, AuthorizedTransfer>;
  /** Number of transfers from an account, however they were made. */
  transfersFrom(account: Address): number;
  /** Transactions that the account has sent. */
  nonce: number;
  /** Transactions that wait in the node's mempool, with or without a gap before them. */
  waiting: number;
}

/** A transfer by an authorization. */
export interface AuthorizedTransfer {
  to: Address;
  value: bigint;
  hash: Hex;
}

/** Reads the whole chain. */
export async function readChain(devnet: Devnet): Promise<ChainRecord> {
  const { client, token, accounts } = devnet;
  const logs = await client.getLogs({ address: token, fromBlock: 0n, toBlock: "latest" });
  const events = parseEventLogs({ abi: eip3009Abi, logs });
  const executions = new Map<string, { hash: Hex; logIndex: number }[]>();
  const transfers = new Map<string, { to: Address; value: bigint }>();
  const toSeller = new Map<string, number>();
  for (const event of events) {
    const { transactionHash, logIndex } = event;
    if (event.eventName === "AuthorizationUsed") {
      const key = keyOf(event.args.authorizer, event.args.nonce);
      const known = executions.get(key) ?? [];
      executions.set(key, [...known, { hash: transactionHash, logIndex }]);
    }
    if (event.eventName === "Transfer") {
      const { from, to, value } = event.args;
      transfers.set(`${transactionHash} ${logIndex} ${toLowerHex(from)}`, { to, value });
      if (!isAddressEqual(to, accounts.seller.address)) continue;
      toSeller.set(toLowerHex(from), (toSeller.get(toLowerHex(from)) ?? 0) + 1);
    }
  }
  const [nonce, pool] = await Promise.all([
    client.getTransactionCount({ address: accounts.relayer.address }),
    client.getTxpoolStatus(),
  ]);
  return {
    // The token emits AuthorizationUsed, and in the next log the transfer.
    executionsOf({ authorization: { from, to, value, nonce } }) {
      return (executions.get(keyOf(from, nonce)) ?? [])
        .filter(({ hash, logIndex }) => {
          const moved = transfers.get(`${hash} ${logIndex + 1} ${toLowerHex(from)}`);
          return moved?.value === value && isAddressEqual(moved.to, to);
        })
        .map(({ hash }) => hash);
    },
    authorizedBy(account) {
      const own = keyOf(account, "0x").slice(0, -2);
      const made = new Map<string, AuthorizedTransfer>();
      for (const [key, uses] of executions) {
        if (!key.startsWith(own)) continue;
        for (const { hash, logIndex } of uses) {
          const moved = transfers.get(`${hash} ${logIndex + 1} ${toLowerHex(account)}`);
          if (moved !== undefined) made.set(key.slice(own.length), { ...moved, hash });
        }
      }
      return made;
    },
    transfersFrom: (account) =>
      [...transfers.keys()].filter((key) => key.endsWith(` ${toLowerHex(account)}`)).length,
    transfersToSeller: (payer) => toSeller.get(toLowerHex(payer)) ?? 0,
    nonce,
    waiting: pool.pending + pool.queued,
  };
}

function keyOf(payer: Address, nonce: Hex): string {
  return `${toLowerHex(payer)}/${toLowerHex(nonce)}`;
}
