import { userInfo } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import {
  DatabaseError,
  databaseFileOf,
  isDatabaseError,
  lockDatabaseFile,
  openDatabase,
  requireMigrated,
} from "@coinslot/storage";
import type * as z from "zod";
import { createLedger } from "../ledger/create-ledger.ts";
import { ledgerMigrations } from "../ledger/migrations/ledger-migrations.ts";
import { openLedger } from "../ledger/open-ledger.ts";
import { createProcessId } from "../ledger/process-id.ts";
import type { LedgerSchema } from "../ledger/schema.ts";
import { askSeller, askSellerOverHttp, type OperatorEndpoint } from "./ask-seller.ts";
import type { CallerWords } from "./caller-headers.ts";
import type { Operation, ReadOperation, WriteOperation } from "./operation.ts";
import { OperationRefusedError } from "./operation-refused-error.ts";
import { type OperatorParts, performOperation } from "./perform-operation.ts";

/** Location of a ledger for its operator: the ledger itself, or a seller that serves it. */
export type OperatorPlace = string | OperatorEndpoint;

/** The lock may be held for a moment: by a command, or by a seller that starts. */
const patienceMs = 3_000;
const retryMs = 50;
/** At least that of the sellers, which a command does not know: none counts as dead too soon. */
const heartbeatLeaseMs = 600_000;

/**
 * Runs an operation from outside of the sellers. On PostgreSQL they see its effect in the tables.
 * The process that holds a SQLite file is asked by its socket. Without one, the file is taken for
 * the operation. A read takes no lock. An endpoint is asked over HTTP in any case.
 *
 * @throws OperationRefusedError in words for the operator, DatabaseError where the ledger fails,
 * Error where its holder could not do it
 */
export async function runOperation<Argument extends z.ZodType, Result extends z.ZodType>(
  place: OperatorPlace,
  operation: Operation<Argument, Result>,
  argument: z.input<Argument>,
  words: CallerWords = {},
): Promise<z.output<Result>> {
  if (typeof place !== "string") return askSellerOverHttp(place, operation, argument, words);
  if (operation.access === "read") {
    const known = operation.asksSeller ? await askKnowing(place, operation, argument) : undefined;
    return known ?? readByItself(place, operation, argument);
  }
  if (operation.access === "seller") {
    const result = await askSeller(place, operation, argument, words);
    if (result !== undefined) return result;
    throw new OperationRefusedError("no_seller", noSeller(place));
  }
  const deadline = performance.now() + patienceMs;
  for (;;) {
    try {
      return await writeByItself(place, operation, argument, words);
    } catch (error) {
      if (!isDatabaseError(error, "file-locked")) throw error;
      const result = await askSeller(place, operation, argument, words);
      if (result !== undefined) return result;
      if (performance.now() > deadline) throw unreachable(error);
    }
    await sleep(retryMs);
  }
}

/** The answer of a running seller; `undefined` where none can give it. */
async function askKnowing<Argument extends z.ZodType, Result extends z.ZodType>(
  url: string,
  operation: ReadOperation<Argument, Result>,
  argument: z.input<Argument>,
): Promise<z.output<Result> | undefined> {
  try {
    return await askSeller(url, operation, argument);
  } catch (error) {
    // One of the release before, or one that is frozen: the ledger can be read all the same.
    if (error instanceof OperationRefusedError && error.code !== "unknown_operation") throw error;
    return undefined;
  }
}

async function readByItself<Argument extends z.ZodType, Result extends z.ZodType>(
  url: string,
  operation: ReadOperation<Argument, Result>,
  argument: z.input<Argument>,
): Promise<z.output<Result>> {
  const { database, close } = await openLedger({ url, processId: "operator", readOnly: true });
  try {
    const { kysely: db, dialect } = database;
    const result = await operation.run({ db, dialect }, operation.argument.parse(argument));
    return operation.result.parse(result);
  } finally {
    await close();
  }
}

async function writeByItself<Argument extends z.ZodType, Result extends z.ZodType>(
  url: string,
  operation: WriteOperation<Argument, Result>,
  argument: z.input<Argument>,
  words: CallerWords,
): Promise<z.output<Result>> {
  const lock = await lockDatabaseFile(url);
  try {
    const database = await openDatabase<LedgerSchema>({
      url,
      poolSize: 1,
      incrementalVacuum: true,
      applicationName: "coinslot-operator",
    });
    try {
      // Migrations are for sellers: processes of the previous release may run.
      await requireMigrated(database, ledgerMigrations);
      const ledger = createLedger({
        database,
        processId: createProcessId(),
        now: Date.now,
        heartbeatLeaseMs,
        keepAnswersMs: 0,
        releaseLimit: { count: 0, windowMs: 0 },
      });
      const read = operation.argument.parse(argument);
      const parts: OperatorParts = {
        context: { ledger, seller: undefined },
        read: (work) => work(ledger),
      };
      const caller = { ...words, via: "command", actor: userName() } as const;
      return operation.result.parse(await performOperation(parts, operation, read, caller));
    } finally {
      await database.close();
    }
  } finally {
    lock?.release();
  }
}

/** The user of the system; a container may have none. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? "unknown"}`;
  }
}

function noSeller(url: string): string {
  return databaseFileOf(url) === undefined
    ? "A running seller does this: name one that serves its operator over HTTP."
    : "A running seller does this, and none serves its operator beside this ledger: start it.";
}

function unreachable(cause: DatabaseError): DatabaseError {
  return new DatabaseError(
    "file-locked",
    `${cause.message} It does not serve its operator: it is of an older release, or its log says why.`,
    { cause },
  );
}
