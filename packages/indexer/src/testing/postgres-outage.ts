import { openDatabase } from "@coinslot/storage";
import { sql } from "kysely";
import { onTestFinished } from "vitest";

/** Takes a PostgreSQL database away from everybody else, and gives it back. */
export interface PostgresOutage {
  /** Cuts all connections, and refuses new ones. */
  begin(): Promise<void>;
  end(): Promise<void>;
}

export async function prepareOutage(url: string): Promise<PostgresOutage> {
  const admin = await openDatabase<Record<string, never>>({ url, poolSize: 1 });
  onTestFinished(() => admin.close());
  const { kysely } = admin;

  async function allowConnections(isAllowed: boolean): Promise<void> {
    await sql`
      update pg_database set datallowconn = ${isAllowed} where datname = current_database()
    `.execute(kysely);
  }

  return {
    async begin() {
      await allowConnections(false);
      await sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()
      `.execute(kysely);
    },
    end: () => allowConnections(true),
  };
}
