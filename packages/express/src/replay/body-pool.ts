/** A request body in arrival, whose payment is not verified yet. */
export interface PooledBody {
  /** Sets the bytes that are held for this body now. May drop this body, or another. */
  hold(bytes: number): void;
  /** Marks the body as complete: it is held until `close`, and no longer dropped. */
  complete(): void;
  close(): void;
}

/**
 * Bounds the bytes of all bodies that are held for unverified payments. Each body names the bounds
 * that all are measured by, so those of one pool name nearly the same.
 */
export interface BodyPool {
  open(options: {
    /** Owner of the body, for its share. */
    key: string;
    /** For all bodies together. */
    maxUnverifiedBytes: number;
    /** Largest body. Those of one key have an eighth of all, and room for one such body. */
    maxBodyBytes: number;
    /** Called once, when this body is dropped because there is no room. */
    onDrop: () => void;
  }): PooledBody;
  /** Bytes that are held now. */
  heldBytes(): number;
}

interface Entry {
  key: string;
  bytes: number;
  isComplete: boolean;
  onDrop: () => void;
}

/** Bytes that bodies of unverified payments may hold by default. */
export const defaultMaxUnverifiedBytes = 64 * 2 ** 20;

const shareOfOneKey = 1 / 8;

/** The pool that all gates of this process share. */
export const processBodies: BodyPool = createBodyPool();

/**
 * Creates a pool. Where it is full, or the share of a key is, the slowest body is dropped. That is
 * the one that began first, of those still arriving. A body that withholds its last byte soon
 * becomes the slowest. A body that arrives in a moment never does.
 */
export function createBodyPool(): BodyPool {
  const entries = new Set<Entry>();
  const ofKeys = new Map<string, { bytes: number; entries: Set<Entry> }>();
  let bytes = 0;

  function change(entry: Entry, held: number): void {
    const ofKey = ofKeys.get(entry.key) ?? { bytes: 0, entries: new Set() };
    ofKeys.set(entry.key, ofKey);
    ofKey.entries.add(entry);
    ofKey.bytes += held - entry.bytes;
    bytes += held - entry.bytes;
    entry.bytes = held;
  }

  function close(entry: Entry): void {
    if (!entries.delete(entry)) return;
    change(entry, 0);
    const ofKey = ofKeys.get(entry.key);
    ofKey?.entries.delete(entry);
    if (ofKey?.entries.size === 0) ofKeys.delete(entry.key);
  }

  /** Drops the slowest, or this one where all others have arrived. */
  function dropOne(among: Iterable<Entry>, otherwise: Entry): void {
    let victim = otherwise;
    for (const entry of among) {
      if (entry.isComplete || entry.bytes === 0) continue;
      victim = entry;
      break;
    }
    close(victim);
    victim.onDrop();
  }

  return {
    open({ key, maxUnverifiedBytes, maxBodyBytes, onDrop }) {
      const maxBytesOfKey = Math.max(maxUnverifiedBytes * shareOfOneKey, maxBodyBytes);
      const entry: Entry = { key, bytes: 0, isComplete: false, onDrop };
      entries.add(entry);
      return {
        hold(held) {
          if (!entries.has(entry)) return;
          change(entry, held);
          while (entries.has(entry)) {
            const ofKey = ofKeys.get(key);
            if (ofKey && ofKey.bytes > maxBytesOfKey) dropOne(ofKey.entries, entry);
            else if (bytes > maxUnverifiedBytes) dropOne(entries, entry);
            else return;
          }
        },
        complete() {
          entry.isComplete = true;
        },
        close: () => close(entry),
      };
    },
    heldBytes: () => bytes,
  };
}
