import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { onTestFinished } from "vitest";

/** The program of `startTestProcess`, for `useProgram`. */
export const testProgram = new URL("./program.ts", import.meta.url);

/**
 * Starts a process of its own, which ends with the test at the latest.
 *
 * @param program path of the compiled `testProgram`
 */
export function startTestProcess(program: string, command: string, url: string): ChildProcess {
  const child = fork(program, [command, url], { execArgv: [] });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  return child;
}

/** The next message of the child. Rejects if it ends without one. */
export async function nextMessage(child: ChildProcess): Promise<unknown> {
  const abort = new AbortController();
  const ended = once(child, "exit", { signal: abort.signal }).then(([code, signal]) => {
    throw new Error(`The test process ended with ${code ?? signal}`);
  });
  const message = once(child, "message", { signal: abort.signal });
  try {
    return (await Promise.race([message, ended]))[0];
  } finally {
    abort.abort();
    await Promise.allSettled([message, ended]);
  }
}

export async function killTestProcess(child: ChildProcess): Promise<void> {
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
