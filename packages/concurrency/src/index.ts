export { createAutoResetEvent } from "./auto-reset-event.ts";
export { type BatcherOptions, createBatcher } from "./batcher.ts";
export { createKeyedMutex, type KeyedMutex } from "./keyed-mutex.ts";
export { createKeyedSingleFlight } from "./keyed-single-flight.ts";
export { createMutex, type Mutex, type Release } from "./mutex.ts";
export { createSingleFlight, onceSuccessful, type SingleFlight } from "./single-flight.ts";
