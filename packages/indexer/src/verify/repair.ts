/** A block whose stored transfers were not those of the chain, and are now. */
export interface Repair {
  chain: string;
  tokens: readonly string[];
  block: number;
}
