#!/usr/bin/env node
import { stdin, stdout } from "node:process";
import { createInterface } from "node:readline/promises";
import { runCli } from "./run-cli.ts";

const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.once(name, () => interrupted.abort());
}
const isPerson = stdin.isTTY === true && process.stderr.isTTY === true;

process.exitCode = await runCli(process.argv.slice(2), {
  out: (text) => console.log(text),
  err: (text) => console.error(text),
  confirm: isPerson ? confirm : undefined,
  isColourful: stdout.isTTY === true && process.env.NO_COLOR === undefined,
  env: process.env,
  signal: interrupted.signal,
});

async function confirm(question: string): Promise<boolean> {
  const lines = createInterface({ input: stdin, output: process.stderr });
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal: interrupted.signal });
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    lines.close();
  }
}
