/**
 * Kinds of failure, the same for both engines:
 *
 * - `configuration`: the URL, the credentials or the file are wrong; waiting does not help.
 * - `unreachable`: no connection, or it was lost before the commit was sent, or its server takes no
 *   writes at the moment. Nothing was written.
 * - `connection-lost`: lost during a statement outside a transaction, or during a commit; it may
 *   have been written. Repeat only statements that are guarded by the state before them.
 * - `busy`: a lock was not free in time, a deadlock was broken, a snapshot was too old; undone.
 * - `storage-full`: the disk is full or fails; undone.
 * - `unique-violation`, `constraint-violation`: the data refuses the statement.
 * - `newer-schema`: a newer release migrated this database.
 * - `older-schema`: the program that owns the tables has not brought them up to date (see
 *   `requireMigrated`).
 * - `foreign-schema`: the migrations applied to it are not the ones of this program.
 * - `file-locked`: another process owns the database file (see `lockDatabaseFile`).
 * - `file-replaced`: the database file is another one than was opened, or is gone. Writes go to a
 *   file that no program will open again.
 * - `statement`: anything else the engine refused, usually a mistake in a query.
 */
export type DatabaseErrorKind =
  | "configuration"
  | "unreachable"
  | "connection-lost"
  | "busy"
  | "storage-full"
  | "unique-violation"
  | "constraint-violation"
  | "newer-schema"
  | "older-schema"
  | "foreign-schema"
  | "file-locked"
  | "file-replaced"
  | "statement";

const retryableKinds: ReadonlySet<DatabaseErrorKind> = new Set([
  "unreachable",
  "connection-lost",
  "busy",
  "storage-full",
]);

/**
 * The one error of this package. Its message never contains a password; `cause` is the driver's
 * error.
 */
export class DatabaseError extends Error {
  override readonly name = "DatabaseError";
  readonly kind: DatabaseErrorKind;
  /** The same work may succeed later without any change. */
  readonly retryable: boolean;

  constructor(kind: DatabaseErrorKind, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.kind = kind;
    this.retryable = retryableKinds.has(kind);
  }
}

/**
 * Returns whether `error` is a `DatabaseError` of this kind, such as the `unique-violation` of a
 * lost race.
 */
export function isDatabaseError(error: unknown, kind?: DatabaseErrorKind): error is DatabaseError {
  return error instanceof DatabaseError && (kind === undefined || error.kind === kind);
}
