import { fork } from "node:child_process";
import { once } from "node:events";
import type { IndexerProcessOptions, IndexerRun } from "./indexer-process.ts";

/**
 * Indexes a chain from nothing, in a process of its own.
 *
 * @param program from `bundleProgram`
 */
export async function indexOnce(
  program: string,
  options: IndexerProcessOptions,
): Promise<IndexerRun> {
  const child = fork(program, {
    env: { ...process.env, INDEXER: JSON.stringify(options), NODE_ENV: "production" },
    execArgv: [],
  });
  const exited = once(child, "exit");
  const [run]: IndexerRun[] = await Promise.race([
    once(child, "message"),
    exited.then(() => {
      throw new Error("The indexer's process ended without a result.");
    }),
  ]);
  await exited;
  if (run?.stored !== options.transfers)
    throw new Error(`${run?.stored} transfers were stored instead of ${options.transfers}.`);
  return run;
}
