import { formatTable, paint, type Terminal } from "../terminal.ts";
import type { Status } from "./check.ts";
import type { Row } from "./run-checks.ts";

const colours = {
  passed: "green",
  failed: "red",
  warning: "yellow",
  "not offered": "dim",
  "not checked": "dim",
} as const satisfies Record<Status, string>;

/** The findings as a table, and their numbers. */
export function formatFindings(terminal: Terminal, rows: readonly Row[]): string {
  const lines = rows.map(({ status, check, protocol = "", found }) => [
    paint(terminal, colours[status], status),
    check,
    protocol,
    found,
  ]);
  const table = formatTable(terminal, [["", "check", "protocol", "found"], ...lines]);
  return `${table}\n\n${formatCounts(rows)}`;
}

function formatCounts(rows: readonly Row[]): string {
  const parts = (["passed", "failed", "warning", "not checked"] as const).map((status) => {
    return `${rows.filter((row) => row.status === status).length} ${status}`;
  });
  return `${parts.join(", ")}.`;
}
