import pg from "pg";

/** Simulated outage: takes a PostgreSQL database away from all other clients, and gives it back. */
export interface PostgresOutage {
  /** Cuts all connections, and refuses new ones. */
  begin(): Promise<void>;
  end(): Promise<void>;
  /** Closes its own connection. */
  close(): Promise<void>;
}

/** Connects to a database before its outage. */
export async function prepareOutage(url: string): Promise<PostgresOutage> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();

  async function allowConnections(isAllowed: boolean): Promise<void> {
    await client.query(
      "update pg_database set datallowconn = $1 where datname = current_database()",
      [isAllowed],
    );
  }

  return {
    async begin() {
      await allowConnections(false);
      await client.query(`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()
      `);
    },
    end: () => allowConnections(true),
    close: () => client.end(),
  };
}
