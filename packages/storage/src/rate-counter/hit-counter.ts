/** Number of hits in a window. */
export interface Hits {
  count: number;
  /** Until the window ends and counting begins again. */
  resetsInMs: number;
}

/** Counts in fixed windows, which begin with the first hit. */
export interface HitCounter {
  /** Counts one hit, and returns the count with it. */
  hit(name: string, windowMs: number): Promise<Hits>;
}
