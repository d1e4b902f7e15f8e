/** The hosted facilitator: `coinslot facilitator` as a program of its own. `--help` says more. */
import { runCli } from "@coinslot/cli";

const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => interrupted.abort());

process.exitCode = await runCli(["facilitator", ...process.argv.slice(2)], {
  out: console.log,
  err: console.error,
  confirm: undefined,
  isColourful: false,
  env: process.env,
  signal: interrupted.signal,
});
