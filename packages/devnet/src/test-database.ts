import { createDatabase, type Database, type DatabaseSource } from "./database.ts";

/** Holds the address where a test asks for the URL of the run's PostgreSQL server. */
export const postgresOfferVariable = "COINSLOT_TEST_POSTGRES";

/**
 * Creates a PostgreSQL database for one test, or one test file, on the server of the test run: an
 * empty one, or a copy. The first call starts that server.
 *
 * @throws outside of a test run, and if the server cannot be started
 */
export async function createTestDatabase(source: DatabaseSource = {}): Promise<Database> {
  const offer = process.env[postgresOfferVariable];
  if (offer === undefined) {
    throw new Error(
      `${postgresOfferVariable} is not set: run this under vitest with packages/devnet/src/test-postgres.ts as global setup, or use startPostgres().`,
    );
  }
  const response = await fetch(offer);
  const answer = await response.text();
  if (!response.ok)
    throw new Error(`The PostgreSQL server of the test run did not start: ${answer}`);
  return createDatabase(answer, source);
}
