import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import type { SellerOptions } from "./seller-process.ts";

/** Resources that a process has used since its start. */
export interface Usage {
  /** Peak of the resident memory, in bytes. */
  memory: number;
  /** The resident memory of the moment, in bytes. */
  memoryNow: number;
  /** Open files and sockets. */
  descriptors: number;
  /** Those of them that are buyers' connections; NaN of a program of an earlier commit. */
  connections: number;
  /** Processor time, user and system. */
  processorSeconds: number;
}

/** A seller that runs in a process of its own. */
export interface SellerProcess {
  port: number;
  /** Address of its console, if it has one. */
  consoleUrl: string | undefined;
  usage(): Promise<Usage>;
  /** Ends it at once. */
  stop(): Promise<void>;
  /** Ends it in order: it answers what it has, and takes nothing more. */
  retire(): Promise<void>;
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
  const { port, consoleUrl } = await answer<Pick<SellerProcess, "port" | "consoleUrl">>(child);
  return {
    ...{ port, consoleUrl },
    usage: async () => {
      const answered = answer<Omit<Usage, "processorSeconds" | "connections"> & Partial<Usage>>(
        child,
      );
      child.send("usage");
      const usage = await answered;
      // A program of an earlier commit may not know its processor time, or its connections.
      const { processorSeconds = processorSecondsOf(child.pid), connections = Number.NaN } = usage;
      return { ...usage, processorSeconds, connections };
    },
    stop: async () => {
      if (child.exitCode !== null) return;
      const exited = once(child, "exit");
      child.disconnect();
      await exited;
    },
    retire: async () => {
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      await exited;
    },
  };
}

/** Processor time of a process's threads; NaN on a system without `/proc`. */
function processorSecondsOf(pid: number | undefined): number {
  try {
    const threads = readdirSync(`/proc/${pid}/task`).map((thread) => {
      const schedule = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8");
      return Number(schedule.split(" ", 1)[0]);
    });
    return threads.reduce((sum, nanoseconds) => sum + nanoseconds, 0) / 1e9;
  } catch {
    return Number.NaN;
  }
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
