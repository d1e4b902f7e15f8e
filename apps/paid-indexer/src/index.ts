export { type PaidIndexerConfiguration, readConfiguration } from "./read-configuration.ts";
export { settings } from "./settings.ts";
export { type PaidIndexer, startPaidIndexer } from "./start-paid-indexer.ts";
