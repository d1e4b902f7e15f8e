import { CompiledQuery } from "kysely";
import { type PoolClient, Query, type QueryConfig } from "pg";

/**
 * A `COPY … FROM STDIN` with its input: it passes through Kysely to the driver like any other
 * query.
 */
export interface CopyQuery extends CompiledQuery {
  readonly copied: Buffer;
}

export function copyQuery(text: string, copied: Buffer): CopyQuery {
  return { ...CompiledQuery.raw(text), copied };
}

export function isCopyQuery(query: CompiledQuery): query is CopyQuery {
  return "copied" in query;
}

/** The part of `pg`'s connection that copying needs, and its types leave out. */
interface CopyConnection {
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
}

/** Runs the query on a client. Resolves to the number of rows that were written. */
export function runCopy(
  client: PoolClient,
  { text, query_timeout, copied }: QueryConfig & { query_timeout: number; copied: Buffer },
): Promise<number> {
  return new Promise((resolve, reject) => {
    const query = new Query({ text }, (error, result) =>
      error ? reject(error) : resolve(result.rowCount ?? 0),
    );
    // `pg`'s ordinary query refuses to copy. This one has data to send.
    client.query(
      Object.assign(query, {
        query_timeout,
        handleCopyInResponse(connection: CopyConnection) {
          connection.sendCopyFromChunk(copied);
          connection.endCopyFrom();
        },
      }),
    );
  });
}
