import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { SellerOptions } from "./seller-process.ts";

/** A seller that runs in a process of its own. */
export interface SellerProcess {
  port: number;
  /** Most memory that the process was seen to hold, in bytes. */
  memory(): Promise<number>;
  stop(): Promise<void>;
}

/**
 * Starts a seller in a process of its own, and waits until it listens.
 *
 * @param program from `bundleProgram`
 */
export async function startSellerProcess(
  program: string,
  options: SellerOptions,
): Promise<SellerProcess> {
  const child = fork(program, {
    env: { ...process.env, SELLER: JSON.stringify(options), NODE_ENV: "production" },
    execArgv: [],
  });
  const { port } = await answer<{ port: number }>(child);
  return {
    port,
    memory: async () => {
      const told = answer<{ memory: number }>(child);
      child.send("memory");
      return (await told).memory;
    },
    stop: async () => {
      const exited = once(child, "exit");
      child.disconnect();
      await exited;
    },
  };
}

async function answer<T>(child: ChildProcess): Promise<T> {
  const ended = new AbortController();
  try {
    const [message] = await Promise.race([
      once(child, "message", { signal: ended.signal }),
      once(child, "exit", { signal: ended.signal }).then(() => {
        throw new Error("The seller's process ended.");
      }),
    ]);
    return message as T;
  } finally {
    ended.abort();
  }
}
