import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { brotliDecompressSync } from "node:zlib";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import * as z from "zod";
import type { SignedTestPayment } from "./payments.ts";

/** The program of this release, for `useProgram`. */
export const sellingProgram = new URL("./settle-on-request.ts", import.meta.url);

/** Unpacks the program of a former release for the tests of a file. */
export function useFormerProgram(fixture: URL): () => string {
  let folder = "";
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "coinslot-program-"));
    const program = brotliDecompressSync(await readFile(fixture));
    await writeFile(join(folder, "program.mjs"), program);
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  return () => join(folder, "program.mjs");
}

/** Options of `settle-on-request.ts`. */
export interface SellingTask {
  network: string;
  rpcUrl: string;
  seedPhrase: string;
  addressCount: number;
  ledger: string;
  heartbeatLeaseSeconds: number;
}

/** A process that sells, of this release or a former one. */
export interface SellingProcess {
  /** Resolves to `sold`, to why it was not, or to `lost` where the process ended before. */
  sell(payment: SignedTestPayment): Promise<string>;
  /** Ends it in order; resolves to its exit code. */
  stop(): Promise<number | null>;
  kill(): Promise<void>;
}

const messageSchema = z.union([
  z.object({ ready: z.literal(true) }),
  z.object({ number: z.number(), outcome: z.string() }),
]);

/**
 * Starts a program that sells.
 *
 * @throws Error with its error output where it does not start
 */
export async function startSelling(program: string, task: SellingTask): Promise<SellingProcess> {
  const child = spawn(process.execPath, [program, JSON.stringify(task)], { stdio: "pipe" });
  onTestFinished(() => end(child, "SIGKILL"));
  let errors = "";
  child.stderr.on("data", (chunk: unknown) => {
    errors += String(chunk);
  });
  const waiting = new Map<number, (outcome: string) => void>();
  let count = 0;
  let hasEnded = false;
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const message = messageSchema.parse(JSON.parse(line));
      if ("ready" in message) return resolve();
      waiting.get(message.number)?.(message.outcome);
      waiting.delete(message.number);
    });
    child.once("close", () => {
      hasEnded = true;
      for (const answer of waiting.values()) answer("lost");
      reject(new Error(errors.slice(-5_000)));
    });
  });
  // A sale that a killed process cannot read any more.
  child.stdin.on("error", () => undefined);
  return {
    sell({ authorization, paymentPayload, paymentRequirements }) {
      if (hasEnded) return Promise.resolve("lost");
      count += 1;
      const number = count;
      const request = { number, authorization, paymentPayload, paymentRequirements };
      child.stdin.write(`${JSON.stringify(request, bigIntsAsTexts)}\n`);
      return new Promise((resolve) => waiting.set(number, resolve));
    },
    async stop() {
      child.stdin.end();
      await end(child, undefined);
      return child.exitCode;
    },
    kill: () => end(child, "SIGKILL"),
  };
}

async function end(child: ChildProcess, signal: NodeJS.Signals | undefined): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, "close");
  if (signal !== undefined) child.kill(signal);
  await closed;
}

const bigIntsAsTexts = (_: string, value: unknown) =>
  typeof value === "bigint" ? value.toString() : value;
