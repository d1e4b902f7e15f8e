import { BridgeError, createBridge } from "@coinslot/bridge";
import { Command, InvalidArgumentError, Option } from "commander";
import { isHash, zeroAddress } from "viem";
import { UnclearError, UsageError } from "../exit-code.ts";
import { formatJson, type Terminal } from "../terminal.ts";
import { rpcUrlOption, targetRpcUrlOption } from "./bridge-options.ts";
import { printProgress } from "./print-progress.ts";
import { useBridge } from "./use-bridge.ts";

interface TrackOptions {
  rpcUrl: string[];
  to: string;
  targetRpcUrl: string[];
  oft?: string;
  timeout: number;
  json?: true;
}

/** `coinslot bridge track`: waits until a transfer has arrived. */
export function trackCommand(terminal: Terminal): Command {
  return new Command("track")
    .description("wait until a transfer has arrived on its target chain")
    .argument("<hash>", "the transaction on the source chain")
    .addOption(rpcUrlOption().makeOptionMandatory())
    .requiredOption("--to <chain>", "key of the target chain, such as plasma")
    .addOption(targetRpcUrlOption().makeOptionMandatory())
    .option("--oft <address>", "the contract it was sent through, if it is not in the table")
    .addOption(
      new Option("--timeout <seconds>", "how long to wait").default(1800).argParser(readSeconds),
    )
    .option("--json", "print JSON, amounts in the smallest unit")
    .addHelpText(
      "after",
      `
Example:
  coinslot bridge track 0x12ab… --rpc-url https://arb1.arbitrum.io/rpc --to plasma \\
    --target-rpc-url https://rpc.plasma.to`,
    )
    .action(async (hash: string, options: TrackOptions): Promise<void> => {
      if (!isHash(hash)) throw new UsageError("<hash> is not a transaction hash.");
      const { rpcUrl, to, targetRpcUrl, oft: oftContractAddress, timeout, json } = options;
      // Tracking reads the chains alone: it needs no account.
      const account = zeroAddress;
      const targetRpcUrls = { [to]: targetRpcUrl };
      const create = () => createBridge({ account, rpcUrl, bridgeMaxFee: 0n, targetRpcUrls });
      await useBridge(create, async (bridge) => {
        const onProgress = printProgress(terminal);
        const { signal } = terminal;
        const timeoutMs = timeout * 1000;
        const how = { oftContractAddress, onProgress, signal, timeoutMs };
        const delivered = await bridge.track({ hash, ...how }).catch((cause: unknown) => {
          if (!(cause instanceof BridgeError && cause.code === "rpc_unavailable")) throw cause;
          throw new UnclearError(cause.message, { cause });
        });
        terminal.out(json ? formatJson(delivered) : delivered.targetHash);
      });
    });
}

function readSeconds(text: string): number {
  const seconds = Number(text);
  if (!(seconds > 0)) throw new InvalidArgumentError("expected a number of seconds above zero");
  return seconds;
}
