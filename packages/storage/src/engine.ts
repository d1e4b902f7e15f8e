import type { Dialect as KyselyDialect, Transaction } from "kysely";
import type { Dialect } from "./dialect.ts";
import type { Durability } from "./durability.ts";
import type { Notifications } from "./notifications.ts";

/** Parts from which `openDatabase` builds a database. */
export interface Engine {
  readonly dialect: Dialect;
  readonly kyselyDialect: KyselyDialect;
  readonly notifications: Notifications;
  /** Call at the beginning of a transaction whose durability is not that of the database. */
  setDurability<Schema>(transaction: Transaction<Schema>, durability: Durability): Promise<void>;
  /** See `Database.verify`. */
  verify(): Promise<void>;
  /**
   * Resolves once all commits of durability `disk` are there, where a commit does not wait for it.
   */
  sync(): Promise<void>;
}
