import type { DatabaseErrorKind } from "../database-error.ts";
import { property } from "../property.ts";

/**
 * By SQLite's extended result codes, https://www.sqlite.org/rescode.html; the low byte is the
 * primary one.
 */
export function classifySqliteError(error: unknown): DatabaseErrorKind {
  const code = property(error, "errcode");
  if (typeof code !== "number") return classifySqliteMessage(property(error, "message"));
  if (code === 1555 || code === 2067 || code === 2579) return "unique-violation";
  switch (code & 0xff) {
    case 5: // busy: another connection writes
    case 6: // locked
      return "busy";
    case 10: // input or output failed
    case 13: // the disk is full
      return "storage-full";
    case 8: // read-only
    case 14: // cannot open
    case 26: // not a database
      return "configuration";
    case 19:
      return "constraint-violation";
    default:
      return "statement";
  }
}

/**
 * `@photostructure/sqlite` throws without a code for statements that return rows; these are
 * SQLite's own messages.
 */
function classifySqliteMessage(message: unknown): DatabaseErrorKind {
  if (typeof message !== "string") return "statement";
  if (/database (table |schema )?is locked/.test(message)) return "busy";
  if (/UNIQUE constraint failed/.test(message)) return "unique-violation";
  if (/constraint failed/.test(message)) return "constraint-violation";
  if (/disk is full|disk I\/O error/.test(message)) return "storage-full";
  if (/readonly database|unable to open database|is not a database/.test(message)) {
    return "configuration";
  }
  return "statement";
}
