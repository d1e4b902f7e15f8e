import { spawn } from "node:child_process";

/**
 * Starts a program that signals its state by its output.
 *
 * @param {string} program
 * @param {{ args: string[], timeout: AbortSignal } & import("node:child_process").SpawnOptions}
 * options
 * @returns {{ prints: (pattern: RegExp) => Promise<string>, stop: () => Promise<number | null> }}
 *   `prints` resolves to the output once the pattern is in it, `stop` to the exit code
 */
export function start(program, { args, timeout, ...options }) {
  const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  const exited = new Promise((resolve) => {
    child.once("exit", resolve);
    // The program does not exist, or may not be run.
    child.once("error", (error) => {
      output += error.message;
      resolve(null);
    });
  });
  return {
    prints: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (chunk) => {
          output += chunk;
          if (pattern.test(output)) resolve(output);
        };
        child.stdout.setEncoding("utf8").on("data", look);
        child.stderr.setEncoding("utf8").on("data", look);
        void exited.then(() => reject(new Error(`${program} ${args.join(" ")} ended:\n${output}`)));
        timeout.addEventListener("abort", () => reject(new Error(`Too slow:\n${output}`)));
      }),
    stop: () => {
      child.kill("SIGTERM");
      return exited;
    },
  };
}
