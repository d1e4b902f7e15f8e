import { type Address, getAddress, isAddress } from "viem";
import { BridgeError, type BridgeErrorCode } from "../bridge-error.ts";

/**
 * Reads an address in lower case, in upper case, or with a correct checksum (EIP-55): one in mixed case whose checksum
 * is wrong was mistyped. An error says what is wrong.
 */
export function parseEvmAddress(text: string): Address | Error {
  const digits = /^0x([0-9a-fA-F]{40})$/.exec(text)?.[1];
  if (digits === undefined) return new Error("is not 0x and 40 hex digits");
  const hasCase = digits !== digits.toLowerCase() && digits !== digits.toUpperCase();
  if (hasCase && !isAddress(text, { strict: true })) return new Error("does not fit its checksum");
  return getAddress(`0x${digits.toLowerCase()}`);
}

/**
 * Reads an address, or refuses it.
 *
 * @param name what it is called by whoever gave it
 * @throws BridgeError with this code
 */
export function requireEvmAddress(text: string, name: string, code: BridgeErrorCode): Address {
  const address = parseEvmAddress(text);
  if (address instanceof Error) throw new BridgeError(code, `${name} ${address.message}`);
  return address;
}
