import { caip2Of, StoppedError } from "@coinslot/protocol";
import type { Stop } from "./stop.ts";

/** The stop switches as this process has read them last. Asking it reads nothing. */
export interface StopBoard {
  /** Error for a new payment on the network, or for the route, if one of them is stopped. */
  refusalOf(network: string, route: string | undefined): StoppedError | undefined;
  list(): readonly Stop[];
  /** @returns whether the switches differ from the previous ones */
  replace(stops: readonly Stop[]): boolean;
}

/** The end of a stop is not known. A minute costs a buyer little, and a process nothing. */
const retryAfterSeconds = 60;

/** Creates the board of a process, with no switch set. */
export function createStopBoard(): StopBoard {
  let stops: readonly Stop[] = [];
  let reasons = new Map<string, string>();

  return {
    refusalOf(network, route) {
      if (stops.length === 0) return undefined;
      // Callers of either version of the protocol: the first one has names of its own.
      const caip2 = caip2Of(network);
      const ofNetwork = reasons.get(keyOf("network", caip2));
      if (ofNetwork !== undefined) return stopped(`on ${caip2}`, ofNetwork);
      const ofRoute = route === undefined ? undefined : reasons.get(keyOf("route", route));
      return ofRoute === undefined ? undefined : stopped("for this route", ofRoute);
    },
    list: () => stops,
    replace(newest) {
      const isChanged = JSON.stringify(newest) !== JSON.stringify(stops);
      stops = newest;
      reasons = new Map(newest.map(({ kind, name, reason }) => [keyOf(kind, name), reason]));
      return isChanged;
    },
  };
}

function keyOf(kind: Stop["kind"], name: string): string {
  return `${kind} ${name}`;
}

function stopped(where: string, reason: string): StoppedError {
  return new StoppedError(`New payments ${where} are stopped: ${reason}`, { retryAfterSeconds });
}
