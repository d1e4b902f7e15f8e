/** A payment's amount, as the API gives it. */
interface Priced {
  value: string;
  amount: string | null;
}

/**
 * Decimals of a payment's token, from its two amounts: `10000` units that are `0.01` tokens have 6.
 * `undefined` where the token is unknown.
 */
export function decimalsOf({ value, amount }: Priced): number | undefined {
  if (amount === null) return undefined;
  const [whole = "", fraction = ""] = amount.split(".");
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  return digits === "" ? undefined : fraction.length + value.length - digits.length;
}

/** Whole tokens of an amount in the smallest unit: "10000" with 6 decimals is "0.01". */
export function toWhole(value: string, decimals: number): string {
  const digits = value.padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "");
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

/** A decimal cut behind its first digits other than zero: "0.000090100265" to 4 is "0.0000901". */
export function firstDigits(decimal: string, count: number): string {
  const [whole = "0", fraction = ""] = decimal.split(".");
  const zeros = whole === "0" ? fraction.length - fraction.replace(/^0+/, "").length : 0;
  const kept = fraction.slice(0, zeros + count).replace(/0+$/, "");
  return kept === "" ? whole : `${whole}.${kept}`;
}

/**
 * The smallest units of an amount that a person has typed. `undefined` for all that is no exact
 * amount above zero.
 */
export function toUnits(text: string, decimals: number): bigint | undefined {
  const [, whole, fraction = ""] = /^(\d{1,30})(?:\.(\d{1,30}))?$/.exec(text.trim()) ?? [];
  if (whole === undefined || fraction.length > decimals) return undefined;
  const units = BigInt(`${whole}${fraction.padEnd(decimals, "0")}`);
  return units > 0n ? units : undefined;
}
