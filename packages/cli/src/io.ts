import { realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cwd, stderr, stdin, stdout } from "node:process";
import { buffer } from "node:stream/consumers";
import { stateFolder } from "./state-folder.ts";

/** Input and output of a command, besides its dialogue with a person. */
export interface Io {
  /** The folder of files without a path. */
  folder: string;
  /** The folder in place of a read-only one. */
  temporaryFolder: string;
  /** The user's record of payments. `undefined`: none is kept. */
  historyFile: string | undefined;
  /** The user of this process, who owns the files that it writes; `undefined` on Windows. */
  userId: number | undefined;
  /** True if the standard output is a terminal, which reads some characters as commands. */
  isTerminal: boolean;
  /** Writes to the standard output as it is; resolves when there is room for more. */
  write(chunk: Uint8Array | string): Promise<void>;
  /** Unix milliseconds. */
  now(): number;
  /** All of the standard input. */
  readInput(): Promise<Uint8Array>;
  /** Shows a wait, on a terminal, until the returned function is called. */
  showWaiting(words: string): () => void;
  /** A stream for a progress bar; `undefined` without a terminal. */
  progress: { isTTY?: boolean; columns?: number; write(text: string): unknown } | undefined;
}

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const frameMs = 80;
const clearLine = "\r\u001b[2K";

/** Input and output of this process. */
export const processIo: Io = {
  folder: cwd(),
  temporaryFolder: tmpdir(),
  historyFile: join(stateFolder(process.env, realpathSync(cwd())), "payments.jsonl"),
  userId: process.geteuid?.(),
  isTerminal: stdout.isTTY === true,

  write(chunk) {
    return new Promise((resolve, reject) => {
      stdout.write(chunk, (error) => (error ? reject(error) : resolve()));
    });
  },

  now: Date.now,

  readInput: () => buffer(stdin),

  progress: stderr.isTTY === true ? stderr : undefined,

  showWaiting(words) {
    if (stderr.isTTY !== true || process.env.TERM === "dumb") return () => undefined;
    let count = 0;
    const draw = () => {
      stderr.write(`${clearLine}${frames[count % frames.length]} ${words}`);
      count += 1;
    };
    draw();
    const timer = setInterval(draw, frameMs);
    return () => {
      clearInterval(timer);
      stderr.write(clearLine);
    };
  },
};
