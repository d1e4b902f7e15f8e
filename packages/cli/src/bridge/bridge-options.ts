import { type Bridge, type BridgeRequest, usdt0Chains } from "@coinslot/bridge";
import { type Address, isWellFormedAddress, parseMoney } from "@coinslot/protocol";
import { type Command, InvalidArgumentError, Option } from "commander";
import { UsageError } from "../exit-code.ts";
import { readWallet } from "../read-secret.ts";
import type { Terminal } from "../terminal.ts";

/** Decimals of USDT0 and XAUT0, on every chain of the table. */
const tableDecimals = 6;
/** Above the decimals of any bridged token. */
const maxDecimals = 36;
/** Decimals of every native coin, in JSON-RPC. */
export const nativeDecimals = 18;

/** Options of `quote` and `send`. */
export interface RequestOptions {
  rpcUrl: string[];
  to: string;
  token: string;
  amount: string;
  recipient?: string;
  oft?: string;
  decimals?: number;
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

/** Amount, token and destination. */
export function requestOptions(): Option[] {
  return [
    rpcUrlOption().makeOptionMandatory(),
    new Option("--to <chain>", "key of the target chain, such as plasma").makeOptionMandatory(),
    new Option("--token <address>", "the token on the source chain").makeOptionMandatory(),
    new Option("--amount <tokens>", "how much to send, in whole tokens, such as 12.5")
      .argParser(checkAmount)
      .makeOptionMandatory(),
    new Option("--recipient <address>", "recipient; default: the wallet itself"),
    new Option("--oft <address>", "contract to send through, instead of the table's"),
    new Option("--decimals <number>", "decimals of a token that is sent through --oft").argParser(
      readDecimals,
    ),
  ];
}

/** `--max-bridge-fee` and `--max-total-fee`. */
export function feeOptions(): Option[] {
  return [
    new Option("--max-bridge-fee <native>", "maximum fee of LayerZero, such as 0.001")
      .argParser(amountParser(nativeDecimals))
      .makeOptionMandatory(),
    new Option("--max-total-fee <native>", "maximum costs with gas; required with --yes").argParser(
      amountParser(nativeDecimals),
    ),
  ];
}

/** The owner of the tokens: `--account`, or the wallet of the environment. */
export function ownerOf(terminal: Terminal, account: string | undefined): Address {
  const owner = account ?? readWallet(terminal.env)?.address;
  if (owner === undefined) {
    throw new UsageError("Missing owner of the tokens. Give --account, or set WALLET_SEED_PHRASE.");
  }
  if (!isWellFormedAddress(owner)) throw new UsageError("--account is not an address.");
  return owner;
}

/**
 * The request in the form of a bridge, and the decimals of its token.
 *
 * @throws UsageError when the amount is none, there is no such chain, or the recipient is missing
 */
export async function readRequest(
  bridge: Bridge,
  options: RequestOptions,
  owner: Address,
): Promise<{ request: BridgeRequest; decimals: number }> {
  const { to: targetChain, token, recipient = owner, oft: oftContractAddress } = options;
  const target = usdt0Chains.find(({ key }) => key === targetChain);
  if (target === undefined) {
    const text = `Unknown chain ${JSON.stringify(targetChain)}: "coinslot bridge chains" lists them.`;
    throw new UsageError(text);
  }
  if (target.type !== "evm" && options.recipient === undefined) {
    throw new UsageError(`The wallet has no address on ${target.name}: give --recipient.`);
  }
  const decimals = await findDecimals(bridge, options);
  const amount = readAmount(options.amount, decimals);
  if (amount === undefined || amount === 0n) {
    const text = `--amount must be a number above zero with at most ${decimals} decimals.`;
    throw new UsageError(text);
  }
  return { request: { targetChain, recipient, token, amount, oftContractAddress }, decimals };
}

/**
 * Decimals of the token. A custom contract may send any token, and one node's answer would decide
 * the amount. So the option names the decimals, and the chain has to agree.
 */
async function findDecimals(bridge: Bridge, options: RequestOptions): Promise<number> {
  const { oft, token, decimals } = options;
  if (oft === undefined) {
    if (decimals === undefined || decimals === tableDecimals) return tableDecimals;
    throw new UsageError(`--decimals: tokens of the table have ${tableDecimals}.`);
  }
  const onChain = await bridge.readToken(token);
  if (decimals === undefined) {
    throw new UsageError(
      `Missing option: --decimals, required with --oft. The RPC endpoint returns ${onChain.decimals} for ${token}.`,
    );
  }
  if (decimals !== onChain.decimals) {
    throw new UsageError(`--decimals: by its contract, the token has ${onChain.decimals}.`);
  }
  return decimals;
}

function readDecimals(text: string): number {
  const decimals = /^[0-9]{1,2}$/.test(text) ? Number(text) : Number.NaN;
  if (decimals <= maxDecimals) return decimals;
  throw new InvalidArgumentError(`expected a number from 0 to ${maxDecimals}`);
}

/**
 * RPC URLs for seeing tokens arrive; `undefined` where none is given, or the target cannot be
 * watched. A variable of the environment applies to every target it fits; an option is for this
 * one.
 */
export function readTargetUrls(
  command: Command,
  { to, targetRpcUrl }: { to: string; targetRpcUrl?: string[] },
): Record<string, string[]> | undefined {
  if (targetRpcUrl === undefined) return undefined;
  const isFromEnvironment = command.getOptionValueSource("targetRpcUrl") === "env";
  return isOutsideEvm(to) && isFromEnvironment ? undefined : { [to]: targetRpcUrl };
}

/** Returns whether a chain of the table cannot be watched. */
export function isOutsideEvm(targetChain: string): boolean {
  return usdt0Chains.some(({ key, type }) => key === targetChain && type !== "evm");
}

function collect(value: string, previous: string[] | undefined): string[] {
  // Commander calls this for the environment as well, where one variable may hold several.
  return [...(previous ?? []), ...value.split(",").map((url) => url.trim())];
}

function amountParser(decimals: number): (text: string) => bigint {
  return (text) => {
    const amount = readAmount(text, decimals);
    if (amount === undefined) {
      throw new InvalidArgumentError(`expected a number with at most ${decimals} decimals`);
    }
    return amount;
  };
}

/** Requires a number. The token bounds its decimals. */
function checkAmount(text: string): string {
  if (readAmount(text, maxDecimals) !== undefined) return text;
  throw new InvalidArgumentError("expected a number, such as 12.5");
}

function readAmount(text: string, decimals: number): bigint | undefined {
  return text.includes("$") ? undefined : parseMoney(text, decimals);
}
