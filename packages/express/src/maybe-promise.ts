/** What a function of the seller's may return: a value, or the promise of one. */
export type MaybePromise<T> = T | Promise<T>;
