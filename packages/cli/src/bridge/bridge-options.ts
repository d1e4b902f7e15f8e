import { type Address, isWellFormedAddress, parseMoney } from "@coinslot/protocol";
import { InvalidArgumentError, Option } from "commander";
import { UsageError } from "../exit-code.ts";
import { readWallet } from "../read-secret.ts";
import type { Terminal } from "../terminal.ts";

/** Decimals of USDT0 and XAUT0, on every chain of the table. */
export const tokenDecimals = 6;
/** Decimals of every native coin, in JSON-RPC. */
export const nativeDecimals = 18;

/** What `quote` and `send` are asked with. */
export interface RequestOptions {
  rpcUrl: string[];
  to: string;
  token: string;
  amount: bigint;
  recipient?: string;
  oft?: string;
}

/** `--rpc-url`, which may be repeated: the next is asked when one fails. */
export function rpcUrlOption(): Option {
  return new Option("--rpc-url <url>", "RPC URL of the chain where the tokens are; may be repeated")
    .env("BRIDGE_RPC_URL")
    .argParser(collect);
}

/** `--target-rpc-url`, to see tokens arrive. */
export function targetRpcUrlOption(): Option {
  return new Option("--target-rpc-url <url>", "RPC URL of the target chain; may be repeated")
    .env("BRIDGE_TARGET_RPC_URL")
    .argParser(collect);
}

/** What is to be sent, and where. */
export function requestOptions(): Option[] {
  return [
    rpcUrlOption().makeOptionMandatory(),
    new Option("--to <chain>", "key of the target chain, such as plasma").makeOptionMandatory(),
    new Option("--token <address>", "the token on the source chain").makeOptionMandatory(),
    new Option("--amount <tokens>", "how much to send, in whole tokens, such as 12.5")
      .argParser(amountParser(tokenDecimals))
      .makeOptionMandatory(),
    new Option("--recipient <address>", "who gets it; the wallet itself unless said"),
    new Option("--oft <address>", "send through this contract instead of the one in the table"),
  ];
}

/** `--max-bridge-fee` and `--max-total-fee`. */
export function feeOptions(): Option[] {
  return [
    new Option("--max-bridge-fee <native>", "the most that LayerZero may take, such as 0.001")
      .argParser(amountParser(nativeDecimals))
      .makeOptionMandatory(),
    new Option("--max-total-fee <native>", "the most that it may cost with gas").argParser(
      amountParser(nativeDecimals),
    ),
  ];
}

/** Whose tokens: `--account`, or the wallet of the environment. */
export function ownerOf(terminal: Terminal, account: string | undefined): Address {
  const owner = account ?? readWallet(terminal.env)?.address;
  if (owner === undefined) {
    throw new UsageError("Whose tokens? Give --account, or set WALLET_SEED_PHRASE.");
  }
  if (!isWellFormedAddress(owner)) throw new UsageError("--account is no address.");
  return owner;
}

function collect(value: string, previous: string[] | undefined): string[] {
  // Commander calls this for the environment as well, where several stand in one variable.
  return [...(previous ?? []), ...value.split(",").map((url) => url.trim())];
}

function amountParser(decimals: number): (text: string) => bigint {
  return (text) => {
    const amount = parseMoney(text, decimals);
    if (amount === undefined || text.includes("$")) {
      throw new InvalidArgumentError(`expected a number with at most ${decimals} decimals`);
    }
    return amount;
  };
}
