import { type Hex, pad } from "viem";
import { BridgeError } from "../bridge-error.ts";
import type { BridgeChain } from "../chains/bridge-chain.ts";
import { parseEvmAddress } from "./evm-address.ts";
import { parseSolanaAddress } from "./solana-address.ts";
import { parseTonAddress } from "./ton-address.ts";
import { parseTronAddress } from "./tron-address.ts";

/**
 * A recipient as the 32 bytes of a message, checked in the form of the target chain's addresses.
 *
 * @throws BridgeError `invalid_recipient`
 */
export function parseRecipient(text: unknown, chain: BridgeChain): Hex {
  const parsed = typeof text === "string" ? parse(text, chain) : new Error("is not a text");
  if (parsed instanceof Error) {
    throw new BridgeError("invalid_recipient", `The recipient on ${chain.name} ${parsed.message}`);
  }
  if (BigInt(parsed) === 0n) {
    throw new BridgeError(
      "invalid_recipient",
      `The recipient on ${chain.name} is the zero address, where tokens are lost`,
    );
  }
  return parsed;
}

function parse(text: string, chain: BridgeChain): Hex | Error {
  switch (chain.type) {
    case "evm": {
      const address = parseEvmAddress(text);
      if (address instanceof Error) return address;
      return pad(`0x${address.slice(2).toLowerCase()}`, { size: 32 });
    }
    case "svm":
      return parseSolanaAddress(text);
    case "ton":
      return parseTonAddress(text);
    case "tvm":
      return parseTronAddress(text);
  }
}
