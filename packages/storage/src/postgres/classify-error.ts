import type { DatabaseErrorKind } from "../database-error.ts";
import { property } from "../property.ts";

/**
 * By SQLSTATE, https://www.postgresql.org/docs/current/errcodes-appendix.html, and by the system's
 * network codes.
 */
export function classifyPostgresError(error: unknown): DatabaseErrorKind {
  const code = property(error, "code");
  if (typeof code !== "string") return classifyPostgresMessage(property(error, "message"));
  if (/^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENOENT)$/.test(code)) {
    return "unreachable";
  }
  if (code === "23505") return "unique-violation";
  if (code === "57P03" || code === "53300") return "unreachable"; // starting up; too many connections
  // A primary that has become a standby: a new connection finds the new primary.
  if (code === "25006") return "unreachable";
  // Its administrator refuses all connections. Other objects that are not ready have the same code.
  if (code === "55000" && /accepting connections/.test(String(property(error, "message"))))
    return "unreachable";
  if (/^(40001|40P01|55P03|57014)$/.test(code)) return "busy"; // serialization, deadlock, lock, time limit
  if (/^(28|3D)/.test(code)) return "configuration"; // credentials; no such database
  if (/^23/.test(code)) return "constraint-violation";
  if (/^(53|58)/.test(code)) return "storage-full";
  if (/^(08|57P|25P03|E[A-Z]+$)/.test(code)) return "connection-lost";
  return "statement";
}

/** Errors of the driver itself have no code. */
function classifyPostgresMessage(message: unknown): DatabaseErrorKind {
  if (typeof message !== "string") return "statement";
  if (/not queryable|timeout expired|trying to connect|due to connection timeout/.test(message)) {
    return "unreachable";
  }
  if (/^Connection terminated|read timeout/.test(message)) return "connection-lost";
  if (/SASL|password|SSL/.test(message)) return "configuration";
  return "statement";
}
