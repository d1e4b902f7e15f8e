import type { Dialect as KyselyDialect } from "kysely";
import type { Dialect } from "./dialect.ts";
import type { Notifications } from "./notifications.ts";

/** What an engine gives `openDatabase` to build a database of. */
export interface Engine {
  readonly dialect: Dialect;
  readonly kyselyDialect: KyselyDialect;
  readonly notifications: Notifications;
}
