import { appendFileSync } from "node:fs";
import type { Logger } from "@coinslot/facilitator";

/**
 * One JSON object per line, for inspecting a failed run. Sellers and the runner share the file, so
 * it holds a purchase's story in order.
 */
export function createFileLogger(file: string): Logger {
  const write = (level: string) => (fields: object, message: string) => {
    const line = { at: Date.now(), pid: process.pid, level, message, ...describe(fields) };
    appendFileSync(file, `${JSON.stringify(line)}\n`);
  };
  return {
    debug: () => undefined,
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
  };
}

function describe(fields: object): Record<string, unknown> {
  const entries = Object.entries(fields).map(([name, value]: [string, unknown]) => [
    name,
    value instanceof Error ? (value.stack ?? value.message) : value,
  ]);
  return Object.fromEntries(entries);
}
