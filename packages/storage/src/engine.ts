import type { Dialect as KyselyDialect, Transaction } from "kysely";
import type { Dialect } from "./dialect.ts";
import type { Durability } from "./durability.ts";
import type { Notifications } from "./notifications.ts";

/** What an engine gives `openDatabase` to build a database of. */
export interface Engine {
  readonly dialect: Dialect;
  readonly kyselyDialect: KyselyDialect;
  readonly notifications: Notifications;
  /** To be called at the beginning of a transaction whose durability is not that of the database. */
  setDurability<Schema>(transaction: Transaction<Schema>, durability: Durability): Promise<void>;
  /** Resolves once what was committed for the disk is there, where a commit does not wait for it. */
  sync(): Promise<void>;
}
