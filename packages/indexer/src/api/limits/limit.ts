/** Maximum number of requests in each window. */
export interface Limit {
  max: number;
  windowMs: number;
}

/**
 * The limit of a key: its own one where that allows more, since a key's limit raises and never
 * lowers.
 */
export function raisedLimit(usual: Limit, own: Limit | undefined): Limit {
  if (own === undefined) return usual;
  return own.max / own.windowMs > usual.max / usual.windowMs ? own : usual;
}
