import { Command, InvalidArgumentError } from "commander";
import { formatJson, type Terminal, untilInterrupted } from "../terminal.ts";
import {
  describeEnvironment,
  devnetEnvironment,
  floatOf,
  writeFiles,
} from "./devnet-environment.ts";
import { loadDevnet } from "./load-devnet.ts";

interface DevnetOptions {
  chainId: number;
  host: string;
  port: number;
  blockTime?: number;
  files?: string;
  json?: true;
}

const tokensForBuyer = 1_000_000_000n;
const tokensForFloat = 100_000_000n;

/**
 * `coinslot devnet`: a chain on this machine, with the test token and funded accounts, until
 * Ctrl-C.
 */
export function devnetCommand(terminal: Terminal): Command {
  return new Command("devnet")
    .option("--chain-id <number>", "go by this chain id; 9745 is Plasma", wholeNumber(1), 9745)
    .option("--host <address>", "listen here; 0.0.0.0 lets containers in", "127.0.0.1")
    .option("--port <number>", "listen here; 0 is any free port", wholeNumber(0, 65_535), 0)
    .option("--block-time <seconds>", "mine at intervals, not at each transaction", wholeNumber(1))
    .option("--files <folder>", "write the environment there, a file for each variable")
    .option("--json", "print JSON once it runs")
    .addHelpText(
      "after",
      `
The keys of its accounts are public: never send them anything of value.

Examples:
  coinslot devnet
  coinslot devnet --port 8545 --block-time 1
  coinslot devnet --json > devnet.json`,
    )
    .action(
      async ({ chainId, host, port, blockTime, files, json }: DevnetOptions): Promise<void> => {
        // From here on, a signal leaves no chain behind.
        const { signal } = terminal;
        const { describeDevnet, startDevnet } = await loadDevnet();
        const devnet = await startDevnet({
          chainId,
          host,
          port,
          ...(blockTime === undefined ? {} : { blockTimeSeconds: blockTime }),
        });
        try {
          await devnet.mint({ to: devnet.accounts.buyer.address, amount: tokensForBuyer });
          const float = floatOf(devnet);
          if (float) await devnet.mint({ to: float.address, amount: tokensForFloat });
          const environment = devnetEnvironment(devnet);
          if (files !== undefined) await writeFiles(files, environment);
          if (json) {
            const { rpcUrl, network, token } = devnet;
            terminal.out(formatJson({ rpcUrl, network, token, environment }));
          } else {
            terminal.out(await describeDevnet(devnet, { blockTimeSeconds: blockTime }));
            terminal.out(describeEnvironment(environment));
          }
          terminal.err("Ctrl-C stops it.");
          await untilInterrupted(signal);
        } finally {
          await devnet.stop();
        }
        terminal.err("Stopped.");
      },
    );
}

function wholeNumber(least: number, most = 999_999_999): (text: string) => number {
  return (text) => {
    const number = /^[0-9]{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= least && number <= most) return number;
    throw new InvalidArgumentError(`expected a whole number from ${least} to ${most}`);
  };
}
