import { type Address, getAddress, isAddress } from "viem";
import { BridgeError, type BridgeErrorCode } from "../bridge-error.ts";

/**
 * Reads an address in lower case, in upper case, or with a correct checksum (EIP-55). A wrong
 * checksum in mixed case means a typing error. The error names the fault.
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
 * @param name the caller's name for it, for the error
 * @throws BridgeError with this code
 */
export function requireEvmAddress(text: string, name: string, code: BridgeErrorCode): Address {
  const address = parseEvmAddress(text);
  if (address instanceof Error) throw new BridgeError(code, `${name} ${address.message}`);
  return address;
}
