/** Result of a function of the seller's: a value, or the promise of one. */
export type MaybePromise<T> = T | Promise<T>;
