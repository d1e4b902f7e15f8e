/** A block by its number and its hash in lowercase. */
export interface BlockId {
  number: number;
  hash: string;
}
