import { once } from "node:events";
import { createServer } from "node:http";
import { type Postgres, startPostgres } from "./postgres.ts";
import { postgresOfferVariable } from "./test-database.ts";

/**
 * Global setup of the test runner: one PostgreSQL server for the whole run, started on the first
 * test's demand. Workers find it through an environment variable that holds the address where they
 * ask; see `createTestDatabase`.
 *
 * @returns the teardown
 */
// biome-ignore lint/style/noDefaultExport: the test runner calls the default export.
export default async function setup(): Promise<() => Promise<void>> {
  let postgres: Promise<Postgres> | undefined;
  const offer = createServer((_request, response) => {
    postgres ??= startPostgres();
    postgres.then(
      ({ url }) => response.end(url),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  }).listen(0, "127.0.0.1");
  await once(offer, "listening");
  const address = offer.address();
  if (address === null || typeof address === "string")
    throw new Error("A listening socket has no port.");
  process.env[postgresOfferVariable] = `http://127.0.0.1:${address.port}`;

  return async () => {
    offer.close();
    offer.closeAllConnections();
    await (await postgres)?.stop();
  };
}
