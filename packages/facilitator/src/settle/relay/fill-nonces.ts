import { toLowerHex } from "@coinslot/protocol";
import type { Lease } from "@coinslot/storage";
import { createSortableId } from "../../ledger/sortable-id.ts";
import { reopenTransaction } from "../../ledger/transactions/settle-transaction.ts";
import { storeTransaction } from "../../ledger/transactions/store-transaction.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import type { RelayerSigner } from "./relayer-signer.ts";
import { type TrackedTransaction, trackedFrom } from "./relayer-state.ts";
import { fillerGas, signBroadcast } from "./sign-broadcast.ts";

/**
 * Stores a no-op transaction for each nonce that the chain waits for and no transaction of the
 * ledger has. Those behind it can then be mined. The caller sends them.
 *
 * A nonce that the ledger has keeps its transaction. One that was settled, where a node lags, stays
 * as it is. One that was given up as lost is open again, to be read from the ledger.
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
        (await reopenTransaction(ledger, { network: name, relayer, nonce })) || isReopened;
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
