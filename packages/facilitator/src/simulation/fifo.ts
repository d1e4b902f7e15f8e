/** An item that stands in one line at a time. */
export interface Linked<Item> {
  /** The item behind it. The line sets it. */
  next?: Item | undefined;
}

/** A line, first in, first out. Adding and removing take the same time at any length. */
export interface Fifo<Item extends Linked<Item>> {
  first: Item | undefined;
  last: Item | undefined;
}

/** Creates an empty line. */
export function createFifo<Item extends Linked<Item>>(): Fifo<Item> {
  return { first: undefined, last: undefined };
}

/** Appends an item that stands in no line. */
export function append<Item extends Linked<Item>>(fifo: Fifo<Item>, item: Item): void {
  if (fifo.last === undefined) fifo.first = item;
  else fifo.last.next = item;
  fifo.last = item;
}

/** Removes the first item. */
export function removeFirst<Item extends Linked<Item>>(fifo: Fifo<Item>): Item | undefined {
  const { first } = fifo;
  if (first === undefined) return undefined;
  fifo.first = first.next;
  if (fifo.first === undefined) fifo.last = undefined;
  first.next = undefined;
  return first;
}
