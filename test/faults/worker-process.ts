import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { createFileLogger } from "./file-logger.ts";
import {
  type KillPoint,
  type ListedPayment,
  type RunnerMessage,
  type WorkerMessage,
  type WorkerOptions,
  workerMessageSchema,
} from "./worker-messages.ts";

/** A seller in a process of its own. */
export interface WorkerProcess {
  url: string;
  pid: number | undefined;
  /** Resolves when the process is gone, however that came. */
  readonly gone: Promise<void>;
  isAlive(): boolean;
  /** Has the process kill itself when it passes a point for the n-th time. */
  killAt(point: KillPoint, passes: number): void;
  /** Has the process stand still when it passes a point for the n-th time, until `thaw`. */
  freezeAt(point: KillPoint, passes: number): void;
  /** Takes both back. */
  letLive(): void;
  /** Takes the process away at once. */
  kill(): Promise<void>;
  /** The process is frozen, and does not notice. */
  freeze(): void;
  thaw(): void;
  /** The ledger's content, as this process reads it. Rejects if it dies meanwhile. */
  listPayments(): Promise<ListedPayment[]>;
}

/** A seller's program, and its options. */
export interface SellerProgram {
  /** Path of the program; compiled, since a run starts it hundreds of times. */
  file: string;
  options: WorkerOptions;
}

/** Starts a seller, and resolves when it takes payments. Rejects if it ends before. */
export async function startWorker(
  { file, options }: SellerProgram,
  onMessage: (message: WorkerMessage) => void = () => undefined,
): Promise<WorkerProcess> {
  // Its error message at a fatal error belongs to its log.
  const log = openSync(options.logFile, "a");
  const child = fork(file, [JSON.stringify(options)], {
    // Not those of the runner: the program is complete.
    execArgv: [],
    env: { ...process.env, NODE_ENV: "production" },
    stdio: ["ignore", "ignore", log, "ipc"],
  });
  closeSync(log);
  const { pid } = child;
  const journal = createFileLogger(options.logFile);
  const gone = once(child, "exit").then(() => journal.info({ pid }, "the seller is gone"));
  child.on("error", () => undefined);
  child.on("message", (message) => onMessage(workerMessageSchema.parse(message)));
  const { port } = await nextMessage(child, "listening");
  const url = `http://127.0.0.1:${port}`;
  journal.info({ pid, url }, "the seller listens");

  function send(message: RunnerMessage): void {
    if (child.connected) child.send(message, () => undefined);
  }

  return {
    url,
    pid,
    gone,
    isAlive: () => child.exitCode === null && child.signalCode === null,
    killAt: (point, passes) => send({ type: "kill-at", point, passes }),
    freezeAt: (point, passes) => send({ type: "freeze-at", point, passes }),
    letLive: () => send({ type: "live" }),
    async kill() {
      child.kill("SIGKILL");
      await gone;
    },
    freeze() {
      journal.info({ pid }, "the seller freezes");
      child.kill("SIGSTOP");
    },
    thaw() {
      journal.info({ pid }, "the seller wakes up");
      child.kill("SIGCONT");
    },
    async listPayments() {
      const answer = nextMessage(child, "payments");
      send({ type: "list-payments" });
      return (await answer).payments;
    },
  };
}

/** The next message of a type. Rejects when the process ends without it. */
function nextMessage<Type extends WorkerMessage["type"]>(
  child: ChildProcess,
  type: Type,
): Promise<Extract<WorkerMessage, { type: Type }>> {
  return new Promise((resolve, reject) => {
    function onMessage(message: unknown): void {
      const parsed = workerMessageSchema.parse(message);
      if (!isOfType(parsed, type)) return;
      forget();
      resolve(parsed);
    }
    function onExit(code: number | null, signal: string | null): void {
      forget();
      reject(new Error(`The worker ended with ${code ?? signal}.`));
    }
    function forget(): void {
      child.off("message", onMessage);
      child.off("exit", onExit);
    }
    child.on("message", onMessage);
    child.on("exit", onExit);
  });
}

function isOfType<Type extends WorkerMessage["type"]>(
  message: WorkerMessage,
  type: Type,
): message is Extract<WorkerMessage, { type: Type }> {
  return message.type === type;
}
