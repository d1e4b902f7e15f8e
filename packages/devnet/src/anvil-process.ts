import { PassThrough } from "node:stream";
import { createAnvil } from "@viem/anvil";
import { devSeedPhrase } from "./accounts.ts";
import { anvilBinary } from "./anvil-binary.ts";
import { guardedCommand } from "./guarded-command.ts";

export type AnvilProcess = {
  rpcUrl: string;
  /** Ends the process. Returns after its exit. */
  stop: () => Promise<void>;
};

/**
 * Blocks whose state can be read, as many as anvil keeps in memory by default. Older states would
 * go to files below the home directory, each with the whole state. Anvil would leave them there, as
 * it ends by SIGKILL.
 */
const keptStates = 500;

/**
 * Starts an anvil that mines each transaction at once. It ends with this process, even if that is
 * killed.
 *
 * @param host an address of this machine; 0.0.0.0 for all of them
 * @param port 0 for any free one
 */
export async function startAnvil(options: {
  chainId: number;
  host: string;
  port: number;
  accountCount: number;
  blockGasLimit: bigint;
  hardfork: "prague" | "shanghai";
}): Promise<AnvilProcess> {
  // Lifeline: anvil lives while this stream is open. Ending it ends anvil as the end of this
  // process would. The package's own stop() races against a timer. The timer either rejects on a
  // busy machine or keeps the process from exiting.
  const lifeline = new PassThrough();
  const anvil = createAnvil({
    anvilBinary: anvilBinary(),
    chainId: options.chainId,
    host: options.host,
    port: options.port,
    accounts: options.accountCount,
    mnemonic: devSeedPhrase,
    gasLimit: options.blockGasLimit,
    startTimeout: 20_000,
    execArgs: ([file, args, execOptions]) => {
      const guarded = guardedCommand({
        file,
        args: [
          ...args,
          "--hardfork",
          options.hardfork,
          "--color",
          "never",
          "--no-request-size-limit",
          "--prune-history",
          String(keptStates),
        ],
        signal: "KILL",
      });
      const how = { ...execOptions, cleanup: false, detached: true, input: lifeline };
      return [guarded.file, guarded.args, how];
    },
  });
  const exited = new Promise<void>((resolve) => anvil.on("exit", () => resolve()));
  const stop = () => {
    lifeline.end();
    return exited;
  };
  let output = "";
  const unsubscribe = anvil.on("stdout", (text) => {
    output += text;
  });
  await anvil.start();
  unsubscribe();
  const address = /Listening on (\S+)/.exec(output)?.[1];
  if (address === undefined) {
    await stop();
    throw new Error(`anvil did not print its address. Its output: ${output}`);
  }
  // An anvil that listens on all addresses is reachable from here by the loopback interface.
  return { rpcUrl: `http://${address.replace("0.0.0.0", "127.0.0.1")}`, stop };
}
