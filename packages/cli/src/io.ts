import { cwd, stderr, stdin, stdout } from "node:process";
import { buffer } from "node:stream/consumers";

/** What a command has around it besides the words it exchanges with a person. */
export interface Io {
  /** The folder in which files without a path are. */
  folder: string;
  /** Whether the standard output is a terminal, which reads some characters as commands. */
  isTerminal: boolean;
  /** Writes to the standard output as it is; resolves when there is room for more. */
  write(chunk: Uint8Array | string): Promise<void>;
  /** Unix milliseconds. */
  now(): number;
  /** All of the standard input. */
  readInput(): Promise<Uint8Array>;
  /** Shows what is waited for, on a terminal; ends with the function that it returns. */
  showWaiting(words: string): () => void;
  /** Where a bar of progress may be drawn; `undefined` where nobody would see it. */
  progress: { isTTY?: boolean; columns?: number; write(text: string): unknown } | undefined;
}

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const frameMs = 80;
const clearLine = "\r\u001b[2K";

/** Those of this process. */
export const processIo: Io = {
  folder: cwd(),
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
