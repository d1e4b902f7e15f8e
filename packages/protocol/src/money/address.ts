import { isAddress } from "viem";
import * as z from "zod";

/** A 20-byte account or contract address, `0x` and 40 hex digits. */
export type Address = `0x${string}`;

/** Bytes as `0x` and an even number of hex digits. */
export type Hex = `0x${string}`;

/**
 * Returns whether a text is an address: all lower case, all upper case, or with a correct EIP-55
 * checksum. A mixed-case address with a wrong checksum is a typing error, and money sent there is
 * lost.
 */
export function isWellFormedAddress(text: string): text is Address {
  if (/^0x(?:[0-9a-f]{40}|[0-9A-F]{40})$/.test(text)) return true;
  return /^0x[0-9a-fA-F]{40}$/.test(text) && isAddress(text, { strict: true });
}

/** An address as it travels: any case without a checksum, or a correct EIP-55 checksum. */
export const addressSchema = z
  .string()
  .max(42)
  .refine(isWellFormedAddress, "expected an address with a correct checksum");

/** 32 bytes, `0x` and 64 hex digits in either case. */
export const bytes32Schema = z.templateLiteral(["0x", z.string().regex(/^[0-9a-fA-F]{64}$/)]);

/** Returns whether two addresses name the same account, in any letter case. */
export function isSameAddress(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

/** The one form in which addresses and hashes are compared and stored. */
export function toLowerHex(hex: Hex): Hex {
  return `0x${hex.slice(2).toLowerCase()}`;
}
