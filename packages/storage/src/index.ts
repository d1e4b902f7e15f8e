export { buildIndex, createIndexStatement, type TableIndex } from "./build-index.ts";
export { type Database, type DatabaseOptions, openDatabase } from "./database.ts";
export { DatabaseError, type DatabaseErrorKind, isDatabaseError } from "./database-error.ts";
export { isInMemory } from "./database-url.ts";
export type { Dialect, StoredAmount, StoredSum } from "./dialect.ts";
export type { Durability, TransactionOptions } from "./durability.ts";
export { type AcquireLeaseOptions, acquireLease, type HeldLease } from "./held-lease.ts";
export type { InsertMany, OnConflict } from "./insert-many.ts";
export {
  createLeases,
  type Lease,
  type LeaseStanding,
  type Leases,
  type LeasesOptions,
  leasesMigration,
} from "./leases.ts";
export { type MigrateOptions, type Migration, migrate, requireMigrated } from "./migrate.ts";
export type { NotificationHandler } from "./notifications.ts";
export { appendEvent } from "./outbox/append-event.ts";
export { appendEvents, type DirectedEvent } from "./outbox/append-events.ts";
export { type ClaimedDelivery, claimDeliveries } from "./outbox/claim-deliveries.ts";
export { type Conclusion, concludeDeliveries } from "./outbox/conclude-deliveries.ts";
export { type EventSource, eventStatements, isWanted } from "./outbox/event-statements.ts";
export { healClock } from "./outbox/heal-clock.ts";
export {
  type DeadDelivery,
  type EndpointStanding,
  listDead,
  listEndpoints,
  readBacklog,
} from "./outbox/list-deliveries.ts";
export { dropListener, dropLostListeners, takeEvents } from "./outbox/listeners.ts";
export type { OutboxContext } from "./outbox/outbox-context.ts";
export { createOutboxMigration, outboxMigration } from "./outbox/outbox-migration.ts";
export { pruneDeliveries } from "./outbox/prune-deliveries.ts";
export { type OutboxEndpoint, registerEndpoints } from "./outbox/register-endpoints.ts";
export { releaseClaims } from "./outbox/release-claims.ts";
export { type ReplayRange, replayDeliveries } from "./outbox/replay-deliveries.ts";
export { createDatabaseHitCounter, hitsMigration } from "./rate-counter/database-hit-counter.ts";
export type { HitCounter, Hits } from "./rate-counter/hit-counter.ts";
export { createMemoryHitCounter } from "./rate-counter/memory-hit-counter.ts";
export { type DatabaseFileLock, databaseFileOf, lockDatabaseFile } from "./sqlite/lock-file.ts";
export { createWriter, type Writer } from "./writer.ts";
