import { DatabaseError } from "../database-error.ts";
import { postgresDialect } from "./postgres-dialect.ts";

/** The typed form of an error of `pg`. Its texts name users and databases, never passwords. */
export function postgresError(label: string, cause: unknown): DatabaseError {
  return new DatabaseError(postgresDialect.classify(cause), `${label}: ${reason(cause)}`, {
    cause,
  });
}

function reason(cause: unknown): string {
  // A host with several addresses fails with an error per address, and no message of its own.
  if (cause instanceof AggregateError) return cause.errors.map(reason).join(", ");
  return cause instanceof Error ? cause.message : String(cause);
}
