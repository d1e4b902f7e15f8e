import { type Address, type Hex, type Network, toLowerHex } from "@coinslot/protocol";
import { hexToBytes } from "viem";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { is } from "../ledger/states.ts";

/** A `Transfer` as the chain has it. */
export interface ChainTransfer {
  network: Network;
  asset: Address;
  from: Address;
  amount: bigint;
  transaction: Hex;
  blockNumber: number;
}

/** Id of a confirmed payment that this transfer has made; by the index of its payer. */
export async function findTransfer(
  { db, dialect }: LedgerReads,
  { network, asset, from, amount, transaction, blockNumber }: ChainTransfer,
): Promise<string | undefined> {
  const payer = toLowerHex(from);
  const value = dialect.amount.encode(amount);
  const payment = await db
    .selectFrom("payments")
    .select("id")
    .where("payer", "=", payer)
    .where("state", "=", is("confirmed"))
    .where("block_number", "=", blockNumber)
    .where("transaction_hash", "=", toLowerHex(transaction))
    .where("network", "=", network)
    .where("asset", "=", toLowerHex(asset))
    .where("value", "=", value)
    .limit(1)
    .executeTakeFirst();
  if (payment) return payment.id;
  const archived = await db
    .selectFrom("archived_payments")
    .select("id")
    .where("payer", "=", hexToBytes(payer))
    .where("transaction_hash", "=", hexToBytes(toLowerHex(transaction)))
    .where("network", "=", network)
    .where("asset", "=", hexToBytes(toLowerHex(asset)))
    .where("value", "=", value)
    .where("state", "=", "confirmed")
    .limit(1)
    .executeTakeFirst();
  return archived?.id;
}

/** Payments of an amount that are in no block for the ledger, and may be for the chain. */
export async function findUnconfirmed(
  { db, dialect }: LedgerReads,
  { network, asset, from, amount }: ChainTransfer,
): Promise<{ id: string; nonce: Hex }[]> {
  return db
    .selectFrom("payments")
    .select(["id", "nonce"])
    .where("payer", "=", toLowerHex(from))
    .where("state", "<>", is("confirmed"))
    .where("network", "=", network)
    .where("asset", "=", toLowerHex(asset))
    .where("value", "=", dialect.amount.encode(amount))
    .execute();
}
