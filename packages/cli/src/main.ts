#!/usr/bin/env node
import { existsSync } from "node:fs";
import { stderr, stdin, stdout } from "node:process";
import { createInterface } from "node:readline/promises";
import { stripVTControlCharacters } from "node:util";
import type { LoadedEnvironment } from "@coinslot/indexer";
import { exitCode } from "./exit-code.ts";
import { runCli } from "./run-cli.ts";

const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.once(name, () => interrupted.abort());
}
// Whoever reads the output has seen enough, such as `head`.
stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(exitCode.done);
  throw error;
});
const isPerson = stdin.isTTY === true && stderr.isTTY === true;
const { NO_COLOR, TERM } = process.env;

try {
  const { env, file } = await loadSettings();
  // Options that may come from the environment look for themselves.
  Object.assign(process.env, file?.values);
  process.exitCode = await runCli(process.argv.slice(2), {
    out: (text) => console.log(forStream(stdout, text)),
    err: (text) => console.error(forStream(stderr, text)),
    confirm: isPerson ? confirm : undefined,
    isColourful: (stdout.isTTY === true || stderr.isTTY === true) && !NO_COLOR && TERM !== "dumb",
    env,
    envFile: file,
    signal: interrupted.signal,
  });
} catch (error) {
  console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = exitCode.usage;
}

/** Where there is no file, as most of the time, what reads one is not loaded. */
async function loadSettings(): Promise<LoadedEnvironment> {
  const isThere = Boolean(process.env.COINSLOT_ENV_FILE) || existsSync(".env");
  if (!isThere) return { env: process.env, file: undefined };
  const { loadEnvironment } = await import("./load-environment.ts");
  return loadEnvironment(process.env, process.cwd());
}

/** One of the two may be a file, and colours are for terminals. */
function forStream(stream: { isTTY?: boolean }, text: string): string {
  return stream.isTTY === true ? text : stripVTControlCharacters(text);
}

async function confirm(question: string): Promise<boolean> {
  const lines = createInterface({ input: stdin, output: stderr });
  // While it reads, a terminal hands Ctrl-C over as a key; Ctrl-D ends the input without an answer.
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
