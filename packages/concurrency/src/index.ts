export { createAutoResetEvent } from "./auto-reset-event.ts";
export { type BatcherOptions, createBatcher } from "./batcher.ts";
export { createKeyedMutex, type KeyedMutex } from "./keyed-mutex.ts";
export { createKeyedSingleFlight, type KeyedSingleFlight } from "./keyed-single-flight.ts";
export { createMutex, type Mutex, type MutexOptions, type Release } from "./mutex.ts";
export { createSingleFlight, onceSuccessful, type SingleFlight } from "./single-flight.ts";
