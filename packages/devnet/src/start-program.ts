import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";

/** A program in a process of its own, as a test observes it. */
export interface Program {
  child: ChildProcessWithoutNullStreams;
  stdout(): string;
  stderr(): string;
  /** Both streams, in order of arrival. */
  printed(): string;
  /** Resolves with the exit code, when all output has been read. */
  ended: Promise<number | null>;
  /**
   * Waits until the output matches.
   *
   * @throws with all output, if the program ends without it or takes longer than a minute
   */
  waitFor(pattern: RegExp): Promise<RegExpExecArray>;
  /** Kills it, if it has not ended, as a fault of the machine would. */
  kill(): Promise<void>;
}

/** Working directory of a program, and its environment beside PATH. */
export interface ProgramPlace {
  folder: string;
  env?: Readonly<Record<string, string>>;
}

/**
 * Starts a program with this environment and no other settings. The caller must make sure that it
 * is killed.
 */
export function startProgram(
  command: string,
  args: readonly string[],
  { folder, env = {} }: ProgramPlace,
): Program {
  const child = spawn(command, args, { cwd: folder, env: { PATH: process.env.PATH, ...env } });
  const printed = { stdout: "", stderr: "", both: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      printed[name] += text;
      printed.both += text;
    });
  }
  const ended = once(child, "close").then(() => child.exitCode);
  return {
    child,
    stdout: () => printed.stdout,
    stderr: () => printed.stderr,
    printed: () => printed.both,
    ended,
    waitFor(pattern) {
      return new Promise((resolve, reject) => {
        const settle = (end: () => void) => {
          clearTimeout(limit);
          for (const stream of [child.stdout, child.stderr]) stream.off("data", check);
          end();
        };
        const fail = (reason: string) =>
          settle(() => reject(new Error(`${reason} without ${pattern}:\n${printed.both}`)));
        const check = () => {
          const found = pattern.exec(printed.both);
          if (found !== null) settle(() => resolve(found));
        };
        const limit = setTimeout(() => fail("It has run for a minute"), 60_000);
        for (const stream of [child.stdout, child.stderr]) stream.on("data", check);
        void ended.then(() => fail("It ended"));
        check();
      });
    },
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/**
 * Starts a program of this repository from its sources: `args` are those of Node.js, the source
 * file among them. Where a test starts it more than once, `useProgram` and `startCompiled` cost a
 * fraction of the time.
 */
export function startSource(args: readonly string[], place: ProgramPlace): Program {
  const typescript = ["--conditions=source", "--import", import.meta.resolve("tsx")];
  return startCompiled([...typescript, ...args], place);
}

/** Starts a program of JavaScript: `args` are those of Node.js, the file among them. */
export function startCompiled(args: readonly string[], place: ProgramPlace): Program {
  // Node 22 warns that its SQLite is experimental, in the middle of the program's own errors.
  const quiet = "--disable-warning=ExperimentalWarning";
  return startProgram(process.execPath, [quiet, ...args], place);
}
