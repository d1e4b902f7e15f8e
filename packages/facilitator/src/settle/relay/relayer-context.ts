import type { Address, Network } from "@coinslot/protocol";
import type { Lease } from "@coinslot/storage";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import type { LookPace } from "./receipt-poll-interval.ts";
import type { RelayerSigner } from "./relayer-signer.ts";
import type { RelayerState } from "./relayer-state.ts";

export interface RelayerOptions {
  context: SettlementContext;
  network: SettlementNetwork;
  signer: RelayerSigner;
  /** Called when the ledger may have payments in its queue that were not there before. */
  onQueueChanged: () => void;
  /** Called whenever there may be room for another transaction. */
  onCapacity: () => void;
  /** Called when a node says that the relayer cannot pay. */
  onInsufficientFunds: () => void;
}

/** What the functions share that send the transactions of one relayer and follow them. */
export interface RelayerContext extends RelayerOptions {
  state: RelayerState;
  pace: LookPace;
  /** Names it in logs and metrics. */
  labels: { network: Network; relayer: Address };
  /** To be called when the ledger has said that the lease is over. */
  leaseLost: (lease: Lease) => void;
  /** Reads the open transactions from the ledger again. */
  reload: () => void;
  /** Looks for receipts. */
  look: () => void;
}
