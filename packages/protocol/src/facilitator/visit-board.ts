import type { CountedVisit, VisitReason } from "./counted-visit.ts";

/** Number of the visits of one kind, since the start of the process. No network or token: empty. */
export interface VisitTally {
  readonly route: string;
  readonly reason: VisitReason;
  readonly network: string;
  readonly asset: string;
  total: number;
  /** The part of it that a ledger has, where one keeps them. */
  stored: number;
}

/** The visits that this process has counted, in memory. */
export interface VisitBoard {
  /** Adds one. Costs three look-ups by short texts, and allocates nothing for a known kind. */
  count(visit: CountedVisit): void;
  tallies(): readonly VisitTally[];
  /** Calls the listener when something is to be stored, once until the next call. */
  whenCounted(listener: () => void): void;
}

/**
 * Bound of the kinds, each of which is a row a day. Routes and offers are the seller's, reasons are
 * a closed set. So it is reached only by a seller who makes routes or tokens by the request.
 */
const maxKinds = 2_000;

/**
 * Creates the board of a process, with nothing counted. Beyond the bound, visits are counted by
 * their reason alone.
 */
export function createVisitBoard({
  networks,
  max = maxKinds,
}: {
  /** The served networks, where visits may name others: these are a caller's to invent. */
  networks?: ReadonlySet<string>;
  max?: number;
} = {}): VisitBoard {
  const byRoute = new Map<string, Map<VisitReason, VisitTally[]>>();
  const all: VisitTally[] = [];
  let notify: (() => void) | undefined;

  function tallyOf(visit: CountedVisit): VisitTally {
    const { route, reason, asset = "" } = visit;
    const { network: named = "" } = visit;
    const network = networks === undefined || networks.has(named) ? named : "";
    const tallies = byRoute.get(route)?.get(reason);
    const found = tallies?.find((each) => each.network === network && each.asset === asset);
    if (found !== undefined) return found;
    const isPlain = route === "" && network === "" && asset === "";
    if (all.length >= max && !isPlain) return tallyOf({ route: "", reason });
    const tally = { route, reason, network, asset, total: 0, stored: 0 };
    all.push(tally);
    const byReason = byRoute.get(route) ?? new Map<VisitReason, VisitTally[]>();
    byRoute.set(route, byReason.set(reason, [...(tallies ?? []), tally]));
    return tally;
  }

  return {
    count(visit) {
      tallyOf(visit).total += 1;
      const listener = notify;
      notify = undefined;
      listener?.();
    },
    tallies: () => all,
    whenCounted(listener) {
      if (all.some(({ total, stored }) => total > stored)) listener();
      else notify = listener;
    },
  };
}
