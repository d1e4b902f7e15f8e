import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";

/** A process that runs. */
export interface RunningScript {
  child: ChildProcessByStdio<null, Readable, null>;
  /** The lines that it has printed whole. */
  lines(): string[];
  /** Resolves when it has printed something, or has ended. */
  begun: Promise<unknown>;
  ended: Promise<unknown>;
}

/** Starts a command, and collects its output. */
export function runScript([command, ...args]: [string, ...string[]]): RunningScript {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  const ended = once(child, "close");
  const begun = Promise.race([once(child.stdout, "data"), ended]);
  return { child, lines: () => text.split("\n").slice(0, -1), begun, ended };
}
