import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/**
 * Command lines of the processes on this machine that contain `text`: for tests that leave no
 * process behind.
 */
export function runningCommands(text: string): string[] {
  return (process.platform === "linux" ? fromProc() : fromPs()).filter((line) =>
    line.includes(text),
  );
}

/** Alternative to `ps`, which small container images lack. */
function fromProc(): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((id) => {
      try {
        return [readFileSync(`/proc/${id}/cmdline`, "utf8").replaceAll("\0", " ")];
      } catch {
        return []; // The process ended in between.
      }
    });
}

function fromPs(): string[] {
  return execFileSync("ps", ["-A", "-o", "args="], { encoding: "utf8" }).split("\n");
}
