import { readFileSync } from "node:fs";

/**
 * Processor time in milliseconds of this process's main thread, the one that serves buyers.
 * `undefined` on a system without `/proc`.
 */
export function mainThreadMs(): number | undefined {
  try {
    const [nanoseconds] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(
      " ",
    );
    return Number(nanoseconds) / 1e6;
  } catch {
    return undefined;
  }
}
