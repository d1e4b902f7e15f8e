import { type Address, toLowerHex } from "@coinslot/protocol";
import type { Lease } from "@coinslot/storage";
import { createSortableId } from "../../ledger/sortable-id.ts";
import { findNewestForm, findStates } from "../../ledger/transactions/find-transactions.ts";
import { reopenTransaction } from "../../ledger/transactions/settle-transaction.ts";
import { storeTransaction } from "../../ledger/transactions/store-transaction.ts";
import { undoTransaction } from "../../ledger/transactions/undo-transaction.ts";
import type { TransactionState } from "../../ledger/transactions-schema.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import { maxAhead } from "../evidence/find-executions.ts";
import type { RelayerSigner } from "./relayer-signer.ts";
import { type TrackedTransaction, trackedFrom } from "./relayer-state.ts";
import { sendTransaction } from "./send-transaction.ts";
import { fillerGas, signBroadcast } from "./sign-broadcast.ts";
import { type CountWords, countAtHead } from "./used-nonces.ts";

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
  countWords: CountWords;
}): Promise<{ stored: TrackedTransaction[]; isReopened: boolean } | "lease_lost"> {
  const { context, network, signer, lease, nonces } = options;
  const { ledger, clock, logger, metrics } = context;
  if (!(await ledger.leases.isHeld(lease))) return "lease_lost";
  const relayer = toLowerHex(signer.address);
  const states = await findStates(ledger, { network: network.network, relayer, nonces });
  const stored: TrackedTransaction[] = [];
  let isReopened = false;
  for (const [nonce, state] of states) {
    const name = { network: network.network, relayer, nonce };
    if (state === "lost") isReopened = (await reopenTransaction(ledger, name)) || isReopened;
  }
  const included = nonces.filter((nonce) => isIncluded(states.get(nonce)));
  isReopened = (await takeBackIncluded(options, { relayer, nonces: included })) || isReopened;
  const missing = nonces.filter((nonce) => !states.has(nonce));
  const fees = missing.length > 0 ? await network.fees.quote() : undefined;
  if (fees === undefined) return { stored, isReopened };
  for (const nonce of missing) {
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
      relayer,
      nonce,
      gasLimit: fillerGas,
      broadcast,
    };
    const outcome = await storeTransaction(ledger, lease, { ...record, payments: [] });
    if (outcome === "lease_lost") return outcome;
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

function isIncluded(state: TransactionState | undefined): boolean {
  return state === "settled" || state === "final";
}

/**
 * Opens transactions again that count as included and cannot be, by their nonces' use. A receipt is
 * one node's word, and so is a block that is final on a fork. Without this, one of them that was
 * false would hold up each later transaction of the relayer.
 *
 * The nonce's use may be a false word, too. Where one endpoint stands against another, the
 * transaction stays as it is, and its bytes are sent again: that harms nothing, whichever is right.
 */
async function takeBackIncluded(
  options: Parameters<typeof fillNonces>[0],
  { relayer, nonces }: { relayer: Address; nonces: readonly number[] },
): Promise<boolean> {
  if (nonces.length === 0) return false;
  const { context, network, countWords } = options;
  const atHead = await countAtHead(network, relayer);
  if (atHead === undefined) return false;
  const { used, block: unusedAtBlock } = atHead;
  const disputed: number[] = [];
  let isReopened = false;
  for (const nonce of nonces.filter((each) => each >= used)) {
    const words = await countWords(nonce);
    if (words.used > 1 || (words.used === 1 && words.unused < 2)) disputed.push(nonce);
    else {
      const unused = { relayer, nonce, unusedAtBlock };
      isReopened = (await takeBack(options, unused)) || isReopened;
    }
  }
  await Promise.all(
    disputed.map(async (nonce) => {
      const name = { network: network.network, relayer, nonce };
      const broadcast = await findNewestForm(context.ledger, name);
      if (broadcast) await sendTransaction({ context, network, broadcast, isAgain: true });
    }),
  );
  return isReopened;
}

async function takeBack(
  { context, network }: Parameters<typeof fillNonces>[0],
  { relayer, nonce, unusedAtBlock }: { relayer: Address; nonce: number; unusedAtBlock: number },
): Promise<boolean> {
  const { ledger, logger, metrics, emit } = context;
  const { network: name } = network;
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
