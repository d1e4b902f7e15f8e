import { createAnvil } from "@viem/anvil";
import { devSeedPhrase } from "./accounts.ts";
import { anvilBinary } from "./anvil-binary.ts";
import { guardedCommand } from "./guarded-command.ts";

export type AnvilProcess = {
  rpcUrl: string;
  /** Ends the process. Returns when it is gone. */
  stop: () => Promise<void>;
};

/**
 * Starts an anvil on the loopback interface, that mines each transaction at once.
 * It ends with this process, even if that is killed.
 *
 * @param port 0 for any free one
 */
export async function startAnvil(options: {
  chainId: number;
  port: number;
  accountCount: number;
  blockGasLimit: bigint;
}): Promise<AnvilProcess> {
  const anvil = createAnvil({
    anvilBinary: anvilBinary(),
    chainId: options.chainId,
    port: options.port,
    accounts: options.accountCount,
    mnemonic: devSeedPhrase,
    gasLimit: options.blockGasLimit,
    startTimeout: 30_000,
    // This package waits this long for a process that is gone already, and keeps a timer as long.
    stopTimeout: 500,
    execArgs: ([file, args, execOptions]) => {
      const guarded = guardedCommand({
        file,
        // Prague has EIP-7702 accounts, and not yet the limit of 2^24 gas for one transaction.
        args: [...args, "--hardfork", "prague", "--color", "never", "--no-request-size-limit"],
        signal: "KILL",
      });
      // A devnet has nothing to save: ended by SIGKILL it is gone at once.
      const how = { ...execOptions, cleanup: false, detached: true, killSignal: "SIGKILL" };
      return [guarded.file, guarded.args, how];
    },
  });
  let output = "";
  const unsubscribe = anvil.on("stdout", (text) => {
    output += text;
  });
  await anvil.start();
  unsubscribe();
  const address = /Listening on (\S+)/.exec(output)?.[1];
  if (address === undefined) {
    await anvil.stop();
    throw new Error(`anvil did not say where it listens. It said: ${output}`);
  }
  return { rpcUrl: `http://${address}`, stop: () => anvil.stop() };
}
