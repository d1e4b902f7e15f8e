import * as z from "zod";

const maxUint256 = 2n ** 256n - 1n;
const decimalInteger = /^(?:0|[1-9][0-9]{0,77})$/;
const decimalMoney = /^\$?(0|[1-9][0-9]{0,77})(?:\.([0-9]{1,77}))?$/;

/**
 * Returns whether a text is a uint256 in its one canonical form: decimal, no sign, no leading zero.
 */
export function isAmount(text: string): boolean {
  return decimalInteger.test(text) && BigInt(text) <= maxUint256;
}

/** An amount on the wire: a uint256 in the token's smallest unit, as a canonical decimal string. */
export const amountSchema = z
  .string()
  .max(78)
  .refine(isAmount, "expected a uint256 as a decimal string");

/**
 * Reads a human price such as `"$0.001"` or `"0.001"` into the token's smallest unit.
 *
 * @returns `undefined` when the text is no price, or has no exact value in `decimals` digits. A
 * price is never rounded.
 */
export function parseMoney(text: string, decimals: number): bigint | undefined {
  const parts = decimalMoney.exec(text.trim());
  if (parts === null) return undefined;
  const whole = parts[1] ?? "0";
  const fraction = (parts[2] ?? "").replace(/0+$/, "");
  if (fraction.length > decimals) return undefined;
  const amount = BigInt(whole + fraction.padEnd(decimals, "0"));
  return amount <= maxUint256 ? amount : undefined;
}

/**
 * Writes an amount in whole tokens, without trailing zeros: `formatMoney(1500n, 6)` is `"0.0015"`.
 */
export function formatMoney(amount: bigint, decimals: number): string {
  const sign = amount < 0n ? "-" : "";
  const digits = (amount < 0n ? -amount : amount).toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "");
  return fraction === "" ? sign + whole : `${sign}${whole}.${fraction}`;
}
