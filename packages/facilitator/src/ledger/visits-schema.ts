/**
 * Requests to paid routes that bought nothing: their number on a day, as one process has counted.
 */
export interface VisitsTable {
  /** Whole days since 1970, in UTC, of the time of storing. */
  day: number;
  /** Empty where another program sells. */
  route: string;
  /** One of `visitReasons`. A newer release may know more. */
  reason: string;
  /** Empty where not known, like the token. */
  network: string;
  asset: string;
  /** Empty: the sum of processes of the past. */
  process_id: string;
  count: number;
}
