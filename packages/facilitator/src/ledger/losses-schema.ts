import type { Hex, Network } from "@coinslot/protocol";

/** Final blocks with payments or transactions of ours: the newest 100,000 heights of a network. */
export interface FinalBlocksTable {
  network: Network;
  number: number;
  hash: Hex;
  /** When the chain was first seen with another block in its place, on the database's clock. */
  left_at: number | null;
}

/** Payments that were final when their block left the chain: the last such block of each. */
export interface DeepReversalsTable {
  payment_id: string;
  network: Network;
  block_number: number;
  block_hash: Hex;
  transaction_hash: Hex | null;
  /** Its `final_at` before. */
  final_at: number;
  /** On the database's clock. */
  reversed_at: number;
}

/** The tables of reorganisations deeper than final. README.md, "Deep reorganisations". */
export interface LossTables {
  final_blocks: FinalBlocksTable;
  deep_reversals: DeepReversalsTable;
}
