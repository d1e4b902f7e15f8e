import { BridgeError, createBridge } from "@coinslot/bridge";
import { Command, InvalidArgumentError, Option } from "commander";
import { type Hex, isHash, isHex, keccak256, zeroAddress } from "viem";
import { UnclearError, UsageError } from "../exit-code.ts";
import { formatJson, type Terminal } from "../terminal.ts";
import {
  isOutsideEvm,
  readTargetUrls,
  rpcUrlOption,
  targetRpcUrlOption,
} from "./bridge-options.ts";
import { printProgress } from "./print-progress.ts";
import { useBridge } from "./use-bridge.ts";

interface TrackOptions {
  rpcUrl: string[];
  to: string;
  targetRpcUrl?: string[];
  oft?: string;
  transaction?: string;
  timeout: number;
  json?: true;
}

/** `coinslot bridge track`: waits until a transfer has arrived. */
export function trackCommand(terminal: Terminal): Command {
  const command = new Command("track");
  return command
    .description("wait until a transfer has arrived on its target chain")
    .argument("<hash>", "the transaction on the source chain")
    .addOption(rpcUrlOption().makeOptionMandatory())
    .requiredOption("--to <chain>", "key of the target chain, such as plasma")
    .addOption(targetRpcUrlOption())
    .option("--oft <address>", "the contract it was sent through, if it is not in the table")
    .option("--transaction <hex>", "its signed bytes: sends them again while they are in no block")
    .addOption(
      new Option("--timeout <seconds>", "how long to wait").default(1800).argParser(readSeconds),
    )
    .option("--json", "print JSON, amounts in the smallest unit")
    .addHelpText(
      "after",
      `
"coinslot bridge send" prints its bytes where it ends with 3. With them and two hosts in --rpc-url, a
transfer ends with 1 once another transaction has had its nonce for a minute: then you may send again.
A target outside the EVM needs no --target-rpc-url, and is not watched.

Example:
  coinslot bridge track 0x12ab… --rpc-url https://arb1.arbitrum.io/rpc --to plasma \\
    --target-rpc-url https://rpc.plasma.to`,
    )
    .action(async (hash: string, options: TrackOptions): Promise<void> => {
      if (!isHash(hash)) throw new UsageError("<hash> is not a transaction hash.");
      const { rpcUrl, to, oft: oftContractAddress, timeout, json } = options;
      const transaction = readTransaction(hash, options.transaction);
      const targetRpcUrls = readTargetUrls(command, options);
      if (targetRpcUrls === undefined && !isOutsideEvm(to)) {
        throw new UsageError("Missing option: --target-rpc-url, the RPC URL of the target chain.");
      }
      // Tracking reads the chains alone: it needs no account.
      const account = zeroAddress;
      const create = () => createBridge({ account, rpcUrl, bridgeMaxFee: 0n, targetRpcUrls });
      await useBridge(create, async (bridge) => {
        const onProgress = printProgress(terminal);
        const { signal } = terminal;
        const timeoutMs = timeout * 1000;
        const how = { transaction, oftContractAddress, onProgress, signal, timeoutMs };
        const delivered = await bridge.track({ hash, ...how }).catch((cause: unknown) => {
          if (!(cause instanceof BridgeError && cause.code === "rpc_unavailable")) throw cause;
          throw new UnclearError(cause.message, { cause });
        });
        terminal.out(json ? formatJson(delivered) : delivered.targetHash);
      });
    });
}

function readTransaction(hash: Hex, given: string | undefined): Hex | undefined {
  if (given === undefined) return undefined;
  if (isHex(given) && keccak256(given) === hash.toLowerCase()) return given;
  throw new UsageError("--transaction is not the signed transaction of <hash>.");
}

function readSeconds(text: string): number {
  const seconds = Number(text);
  if (!(seconds > 0)) throw new InvalidArgumentError("expected a number of seconds above zero");
  return seconds;
}
