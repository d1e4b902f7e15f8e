/** The relayers of a network as one process sees them. */
export interface FleetView {
  /** This process. */
  self: string;
  /** Names of the relayers' leases. */
  relayers: readonly string[];
  /** The living processes with the same relayers; this one among them. */
  settlers: readonly string[];
  /** The owner of each lease that is held, also one of another kind of process. */
  owners: ReadonlyMap<string, string>;
}

/** The part of a process in the next step to a fair share. */
export interface ShareStep {
  /** Free leases to take, in this order. */
  take: readonly string[];
  /** Number of leases to give back. */
  giveBack: number;
}

/**
 * The next step of one process to a fair share: no process holds two relayers more than another. A
 * free lease goes to a process with the fewest. Only the process with the most gives back, and only
 * once nothing is free. So each step lessens the greatest difference, and steps by a stale view are
 * mended by later ones. A lease has one owner at any time, whatever the views are.
 */
export function shareOut({ self, relayers, settlers, owners }: FleetView): ShareStep {
  const counts = new Map(settlers.map((settler) => [settler, 0]));
  const free: string[] = [];
  for (const relayer of relayers) {
    const owner = owners.get(relayer);
    if (owner === undefined) free.push(relayer);
    else if (counts.has(owner)) counts.set(owner, (counts.get(owner) ?? 0) + 1);
  }
  const own = counts.get(self) ?? 0;
  counts.delete(self);
  const least = Math.min(...counts.values());
  if (free.length > 0) {
    const take = Math.max(0, Math.min(free.length, least + 1 - own));
    return { take: inOwnOrder(free, self, settlers).slice(0, take), giveBack: 0 };
  }
  const hasMost = [...counts].every(
    ([other, count]) => count < own || (count === own && self < other),
  );
  const difference = own - least;
  return { take: [], giveBack: hasMost && difference >= 2 ? Math.floor(difference / 2) : 0 };
}

/** Processes that see the same free leases begin at different ones. */
function inOwnOrder(free: readonly string[], self: string, settlers: readonly string[]): string[] {
  const place = [...settlers].sort().indexOf(self);
  const start = Math.max(0, place) % free.length;
  return [...free.slice(start), ...free.slice(0, start)];
}
