#!/usr/bin/env node
import { existsSync } from "node:fs";
import { stderr, stdin, stdout } from "node:process";
import { createInterface } from "node:readline/promises";
import type { LoadedEnvironment } from "@coinslot/hosting/environment";
import { exitCode } from "./exit-code.ts";
import { movesTokens, readsLedger, runCli } from "./run-cli.ts";
import { showUnsafeInColours } from "./safe-text.ts";

const interrupted = new AbortController();
let hasListeners = false;
const words = process.argv.slice(2);
if (movesTokens(words) && !readsLedger(words)) listenForSignals();
let outputError: NodeJS.ErrnoException | undefined;
stdout.on("error", (error: NodeJS.ErrnoException) => {
  // The reader of the output, such as `head`, has left. A command that moves tokens goes on, to
  // report their fate.
  if (error.code === "EPIPE" && !movesTokens(words)) process.exit(exitCode.done);
  outputError ??= error;
});
// There is no other place to report it.
stderr.on("error", () => undefined);
const isPerson = stdin.isTTY === true && stderr.isTTY === true;
const { NO_COLOR, TERM } = process.env;

try {
  const { env, file } = await loadSettings();
  // Options from the environment read this object themselves.
  Object.assign(process.env, file?.values);
  process.exitCode = await runCli(words, {
    out: (text) => console.log(forStream(stdout, text)),
    err: (text) => console.error(forStream(stderr, text)),
    confirm: isPerson ? confirm : undefined,
    isColourful: (stdout.isTTY === true || stderr.isTTY === true) && !NO_COLOR && TERM !== "dumb",
    env,
    envFile: file,
    get signal() {
      listenForSignals();
      return interrupted.signal;
    },
  });
  // The error of the last write comes with the next turn of the event loop.
  await new Promise((resolve) => setImmediate(resolve));
  if (outputError && outputError.code !== "EPIPE" && process.exitCode === exitCode.done) {
    console.error(`error: The output could not be written: ${outputError.message}`);
    process.exitCode = movesTokens(words) ? exitCode.unclear : exitCode.failed;
  }
} catch (error) {
  console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = exitCode.usage;
}

/**
 * A listener keeps a signal from ending the process, and runs only between two pieces of work. A
 * query without an end is one such piece. So only commands that look at `signal` have a listener.
 * Those that move tokens have one from their start, or from the end of their reads of a ledger.
 */
function listenForSignals(): void {
  if (hasListeners) return;
  hasListeners = true;
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.once(name, () => interrupted.abort());
  }
}

/** Lazy import of the reader: most of the time there is no file. */
async function loadSettings(): Promise<LoadedEnvironment> {
  const isThere = Boolean(process.env.COINSLOT_ENV_FILE) || existsSync(".env");
  if (!isThere) return { env: process.env, file: undefined };
  const { loadEnvironment } = await import("./load-environment.ts");
  return loadEnvironment(process.env, process.cwd());
}

/** One of the two streams may be a file, and colours are for terminals. */
function forStream(stream: { isTTY?: boolean }, text: string): string {
  return showUnsafeInColours(text, stream.isTTY === true);
}

async function confirm(question: string): Promise<boolean> {
  const lines = createInterface({ input: stdin, output: stderr });
  // In raw mode, a terminal sends Ctrl-C as a key. Ctrl-D ends the input without an answer.
  lines.once("SIGINT", () => interrupted.abort());
  const ended = new AbortController();
  lines.once("close", () => ended.abort());
  const signal = AbortSignal.any([interrupted.signal, ended.signal]);
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal });
    return /^y(es)?$/i.test(answer.trim());
  } catch (error) {
    interrupted.signal.throwIfAborted();
    if (ended.signal.aborted) return false;
    throw error;
  } finally {
    lines.close();
  }
}
