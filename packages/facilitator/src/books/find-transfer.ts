import {
  type Address,
  channelSettlementAbi,
  type Hex,
  type Network,
  toLowerHex,
} from "@coinslot/protocol";
import { hexToBytes, toEventSelector } from "viem";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { is } from "../ledger/states.ts";

const settledTopics = channelSettlementAbi.flatMap((item) =>
  item.type === "event" && item.name === "Settled" ? [toEventSelector(item)] : [],
);

/** A `Transfer` as the chain has it. */
export interface ChainTransfer {
  network: Network;
  asset: Address;
  from: Address;
  amount: bigint;
  transaction: Hex;
  blockNumber: number;
}

/**
 * Id of a confirmed payment that this transfer has made; by the index of its payer. Of a payout the
 * id, too; the contract where its block is not read yet.
 */
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
  return archived?.id ?? findPayout({ db, dialect }, { network, from, transaction, blockNumber });
}

async function findPayout(
  { db }: LedgerReads,
  transfer: Pick<ChainTransfer, "network" | "from" | "transaction" | "blockNumber">,
): Promise<string | undefined> {
  const { network, blockNumber } = transfer;
  const contract = toLowerHex(transfer.from);
  const payout = await db
    .selectFrom("channel_payouts")
    .select("id")
    .where("network", "=", network)
    .where("transaction_hash", "=", toLowerHex(transfer.transaction))
    .where("contract", "=", contract)
    .limit(1)
    .executeTakeFirst();
  if (payout) return payout.id;
  const behind = await db
    .selectFrom("channel_payout_progress")
    .select("contract")
    .where("network", "=", network)
    .where("contract", "=", contract)
    .where("block_number", "<", blockNumber)
    .executeTakeFirst();
  return behind?.contract;
}

/**
 * Payments of an amount that are in no block for the ledger, and may be for the chain. Of a
 * transfer from an escrow contract, the event that a payout has beside it.
 */
export async function findUnconfirmed(
  { db, dialect }: LedgerReads,
  { network, asset, from, amount }: ChainTransfer,
): Promise<{ id: string; nonce: Hex }[]> {
  const contract = await db
    .selectFrom("channel_payout_progress")
    .select("contract as id")
    .where("network", "=", network)
    .where("contract", "=", toLowerHex(from))
    .executeTakeFirst();
  if (contract !== undefined) return settledTopics.map((nonce) => ({ ...contract, nonce }));
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
