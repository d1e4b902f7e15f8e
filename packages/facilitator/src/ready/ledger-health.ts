import type { Clock } from "@coinslot/chain";
import { DatabaseError, type DatabaseErrorKind } from "@coinslot/storage";
import { LedgerRestoredError } from "../ledger/maintenance/processes.ts";
import type { Logger } from "../logger.ts";

/** Whether the ledger can be written, and a log that an outage of it does not fill. */
export interface LedgerHealth {
  /** The log, with one line a minute for each message about a fault of the ledger. */
  readonly logger: Logger;
  /**
   * Called when a heartbeat could not be written, or the ledger not be opened.
   *
   * @param consequence for the log, once a minute at most, whatever the error
   */
  failed(error: unknown, consequence?: string): void;
  /** Called with a request's fault. Small writes, such as heartbeats, may go on beside some. */
  refused(error: DatabaseError): void;
  /** Called when a heartbeat was written. */
  wrote(): void;
  /** Why the ledger cannot be written, and the remedy; `undefined` while it can. */
  obstacle(): string | undefined;
}

/** Time for which a message about the ledger is not repeated. */
const silenceMs = 60_000;

/**
 * The state of a ledger, as the process that writes to it finds it.
 *
 * ```text
 *              failed; refused, where heartbeats may not show it
 *   writable ─────────────────────────────────────────────────────► failing
 *       ▲                                                              │
 *       └── a heartbeat, after another one since the last fault ───────┘
 * ```
 */
export function createLedgerHealth({
  logger,
  clock,
}: {
  logger: Logger;
  clock: Clock;
}): LedgerHealth {
  let obstacle: string | undefined;
  let failingSince = 0;
  let isFaultNew = false;
  const silence = silenceRepeats(logger, clock);

  function note(error: unknown): void {
    isFaultNew = true;
    if (obstacle === undefined) {
      failingSince = clock.now();
      silence(
        "error",
        { err: error },
        `the ledger cannot be written: new payments are refused until it can. ${remedyOf(error)}`,
      );
    }
    obstacle = remedyOf(error);
  }

  return {
    logger: boundLedgerFaults(logger, silence),
    failed(error, consequence) {
      note(error);
      if (consequence !== undefined) silence("warn", { err: error }, consequence);
    },
    refused(error) {
      if (isForGood(error.kind)) note(error);
    },
    wrote() {
      if (obstacle === undefined) return;
      if (isFaultNew) {
        isFaultNew = false;
        return;
      }
      obstacle = undefined;
      const seconds = Math.round((clock.now() - failingSince) / 1000);
      logger.info({ seconds }, "the ledger can be written again");
    },
    obstacle: () => obstacle,
  };
}

/** Faults of the place itself. Others may be of one connection, and the next heartbeat decides. */
function isForGood(kind: DatabaseErrorKind): boolean {
  return kind === "storage-full" || kind === "configuration" || kind === "file-replaced";
}

/** Without names of hosts, files and databases: readiness may be public. */
function remedyOf(error: unknown): string {
  const fault = ledgerFaultIn(error);
  if (fault instanceof LedgerRestoredError) return "It was restored, and is opened anew.";
  switch (fault?.kind) {
    case "storage-full":
      return "Its disk is full or fails: give it space. Selling goes on by itself then.";
    case "unreachable":
    case "connection-lost":
      return "Its server is away, takes no writes (read-only, or a replica), or its disk fails.";
    case "configuration":
      return "It is read-only, or not there: look at its disk, its rights and its address.";
    case "file-replaced":
      return "Its file was moved or replaced while it was open: put a file in its place.";
    case "file-locked":
      return "Another process works on its file.";
    case "busy":
      return "Another transaction holds its rows.";
    default:
      return "The log has the reason.";
  }
}

type Write = (level: "warn" | "error", fields: object, message: string) => void;

/**
 * Writes the first line of each message in a minute, and the number of those left out with the
 * next.
 */
function silenceRepeats(logger: Logger, clock: Clock): Write {
  const written = new Map<string, { at: number; leftOut: number }>();
  return (level, fields, message) => {
    const last = written.get(message);
    if (last !== undefined && clock.now() - last.at < silenceMs) {
      last.leftOut += 1;
      logger.debug(fields, message);
      return;
    }
    written.set(message, { at: clock.now(), leftOut: 0 });
    logger[level](last?.leftOut ? { ...fields, leftOut: last.leftOut } : fields, message);
  };
}

/** Silences repeated messages about a fault of the database. Everything else passes. */
function boundLedgerFaults(logger: Logger, silence: Write): Logger {
  function pass(level: "warn" | "error", fields: object, message: string): void {
    const fault = ledgerFaultIn("err" in fields ? fields.err : undefined);
    if (fault === undefined) logger[level](fields, message);
    else silence(level, fields, message);
  }

  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => pass("warn", fields, message),
    error: (fields, message) => pass("error", fields, message),
  };
}

/** The fault of the database in an error, or in what has caused it. */
function ledgerFaultIn(error: unknown): DatabaseError | LedgerRestoredError | undefined {
  for (let each = error; each instanceof Error; each = each.cause) {
    if (each instanceof DatabaseError || each instanceof LedgerRestoredError) return each;
  }
  return undefined;
}
