import { type Address, toLowerHex } from "@coinslot/protocol";
import type { Lease } from "@coinslot/storage";
import { createSortableId } from "../../ledger/sortable-id.ts";
import { findNewestForm } from "../../ledger/transactions/find-transactions.ts";
import { reopenTransaction } from "../../ledger/transactions/settle-transaction.ts";
import { storeTransaction } from "../../ledger/transactions/store-transaction.ts";
import { undoTransaction } from "../../ledger/transactions/undo-transaction.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import { maxAhead } from "../evidence/find-executions.ts";
import type { RelayerSigner } from "./relayer-signer.ts";
import { type TrackedTransaction, trackedFrom } from "./relayer-state.ts";
import { sendTransaction } from "./send-transaction.ts";
import { fillerGas, signBroadcast } from "./sign-broadcast.ts";
import { countWords, findBlockBefore } from "./used-nonces.ts";

/**
 * Stores a no-op transaction for each nonce that the chain waits for and no transaction of the
 * ledger has. Those behind it can then be mined. The caller sends them.
 *
 * A nonce that the ledger has keeps its transaction. One that was settled stays as it is where a
 * node lags. One that was given up as lost is open again, to be read from the ledger. So is one
 * that counts as included, although a later block has not used its nonce.
 *
 * @returns the stored transactions; `lease_lost` when another process plans for this relayer now.
 */
export async function fillNonces(options: {
  context: SettlementContext;
  network: SettlementNetwork;
  signer: RelayerSigner;
  lease: Lease;
  nonces: readonly number[];
}): Promise<{ stored: TrackedTransaction[]; isReopened: boolean } | "lease_lost"> {
  const { context, network, signer, lease, nonces } = options;
  const { ledger, clock, logger, metrics } = context;
  const fees = await network.fees.quote();
  const stored: TrackedTransaction[] = [];
  let isReopened = false;
  if (fees === undefined) return { stored, isReopened };
  for (const nonce of nonces) {
    const broadcast = await signBroadcast({
      signer,
      chainId: network.chainId,
      nonce,
      to: signer.address,
      data: "0x",
      gasLimit: fillerGas,
      fees,
      content: "filler",
    });
    const record = {
      id: createSortableId(context.now()),
      network: network.network,
      relayer: toLowerHex(signer.address),
      nonce,
      gasLimit: fillerGas,
      broadcast,
    };
    const outcome = await storeTransaction(ledger, lease, { ...record, payments: [] });
    if (outcome === "lease_lost") return outcome;
    if (outcome === "nonce_taken") {
      const { network: name, relayer } = record;
      isReopened =
        (await reopenTransaction(ledger, { network: name, relayer, nonce })) ||
        (await takeBackIncluded(options, { relayer, nonce })) ||
        isReopened;
    }
    if (outcome !== "stored") continue;
    const createdAt = context.now();
    const transaction = { ...record, createdAt, broadcasts: [{ ...broadcast, createdAt }] };
    stored.push(trackedFrom({ ...transaction, payments: [] }, clock.now()));
    metrics.transactions.inc({ network: network.network, event: "stored" });
    logger.warn(
      { network: network.network, relayer: signer.address, nonce },
      "the chain waits for a nonce that no transaction has: an empty one is sent, for those behind it",
    );
  }
  return { stored, isReopened };
}

/**
 * Opens a transaction again that counts as included and cannot be, by the nonce's use. A receipt is
 * one node's word, and so is a block that is final on a fork. Without this, one of them that was
 * false would hold up each later transaction of the relayer.
 *
 * The nonce's use may be a false word, too. Where one endpoint stands against another, the
 * transaction stays as it is, and its bytes are sent again: that harms nothing, whichever is right.
 */
async function takeBackIncluded(
  { context, network }: Parameters<typeof fillNonces>[0],
  { relayer, nonce }: { relayer: Address; nonce: number },
): Promise<boolean> {
  const { ledger, logger, metrics, emit } = context;
  const unusedAtBlock = await findBlockBefore(network, { address: relayer, nonce });
  if (unusedAtBlock === undefined) return false;
  const { network: name } = network;
  const words = await countWords({ context, network }, { address: relayer, nonce });
  if (words.used > 1 || (words.used === 1 && words.unused < 2)) {
    const broadcast = await findNewestForm(ledger, { network: name, relayer, nonce });
    if (broadcast) await sendTransaction({ context, network, broadcast, isAgain: true });
    return false;
  }
  // The node may lag.
  const highest = unusedAtBlock + network.finalAfter + Number(maxAhead);
  const unused = { network: name, relayer, nonce, unusedAtBlock, highest };
  const undone = await undoTransaction(ledger, unused);
  if (undone === undefined) return false;
  for (const { authorization, wasDelivered } of undone) {
    metrics.reorganised.inc({ network: name, delivered: String(wasDelivered) });
    emit({ type: "settle_reorganised", authorization, wasDelivered });
  }
  logger.error(
    { network: name, relayer, nonce, payments: undone.length },
    "a transaction counted as included, and the chain has not used its nonce: a node returned a false receipt, or its fork is gone; it is sent again",
  );
  return true;
}
