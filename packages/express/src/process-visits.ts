import { type CountedVisit, createVisitBoard, type VisitCounter } from "@coinslot/protocol";

/**
 * Visits of all gates of this process whose facilitator keeps no counts. Networks and tokens are
 * those of the seller's own offers.
 */
export const processVisits = createVisitBoard();

/** Adds a visit where it is kept: by the facilitator, or else in this process. */
export function countIn(facilitator: Partial<VisitCounter>, visit: CountedVisit): void {
  if (facilitator.countVisit === undefined) processVisits.count(visit);
  else facilitator.countVisit(visit);
}
