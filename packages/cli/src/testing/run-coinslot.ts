import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "../run-cli.ts";
import type { Terminal } from "../terminal.ts";

/** A run's output and its exit code. */
export interface Ran {
  code: number;
  out: string;
  err: string;
  /** The command's questions. */
  questions: string[];
}

export interface RunOptions {
  env?: Terminal["env"];
  /** The .env file from which a part of it came. */
  file?: Terminal["envFile"];
  /** The person's answer; without it there is no terminal to prompt. */
  answer?: boolean;
  /** The same by the question. */
  answers?: (question: string) => boolean;
  /** Working directory. */
  folder?: string;
  /** The folder in place of a read-only one. Default: a missing one. */
  temporaryFolder?: string;
  /** The record of payments. Default: none is kept. */
  historyFile?: string;
  /** The user that owns the files which it trusts. */
  userId?: number;
  /** Its clock, in unix milliseconds. */
  now?: () => number;
  /** True if its standard output is a terminal. */
  isTerminal?: boolean;
  /** Fails each write to its standard output. */
  outputError?: Error;
  /** Its standard input. */
  input?: string;
  /** Interrupts it when this resolves. */
  interruptOn?: Promise<unknown>;
  /** Receives the first message for a person; the command is interrupted when this resolves. */
  interruptAfter?: (said: string) => Promise<void>;
}

/**
 * Runs the command in this process, in an empty folder of its own unless options name one: a
 * payment that another test has kept must not be found.
 */
export function runCoinslot(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { folder } = options;
  return folder === undefined
    ? inFolder((own) => runIn(own, args, options))
    : runIn(folder, args, options);
}

async function runIn(folder: string, args: readonly string[], options: RunOptions): Promise<Ran> {
  const { env = {}, answer, input = "", interruptOn, interruptAfter } = options;
  const answers = options.answers ?? (answer === undefined ? undefined : () => answer);
  const interrupted = new AbortController();
  const ran = { out: "", err: "", questions: [] as string[] };
  const decoder = new TextDecoder();
  void interruptOn?.then(() => interrupted.abort());
  const code = await runCli(
    args,
    {
      out: (text) => {
        ran.out += `${text}\n`;
      },
      err: (text) => {
        if (ran.err === "") void interruptAfter?.(text).finally(() => interrupted.abort());
        ran.err += `${text}\n`;
      },
      confirm:
        answers === undefined
          ? undefined
          : async (question) => {
              ran.questions.push(question);
              return answers(question);
            },
      isColourful: false,
      env,
      envFile: options.file,
      signal: interrupted.signal,
    },
    {
      folder,
      temporaryFolder: options.temporaryFolder ?? join(folder, "temporary"),
      historyFile: options.historyFile,
      userId: options.userId ?? process.geteuid?.(),
      isTerminal: options.isTerminal === true,
      write: async (chunk) => {
        if (options.outputError) throw options.outputError;
        ran.out += typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
      },
      now: options.now ?? Date.now,
      readInput: async () => new TextEncoder().encode(input),
      showWaiting: () => () => undefined,
      progress: undefined,
    },
  );
  return { code, ...ran };
}

/** Runs `work` in an empty folder that is removed afterwards. */
export async function inFolder<Result>(work: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-cli-"));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
