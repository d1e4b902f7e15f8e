import { type PaymentRequirements, parseMoney } from "@coinslot/protocol";
import { isRecord } from "../is-record.ts";
import type { HeldAnswer } from "../response/held-answer.ts";

/**
 * A handler's header that charges less than the price, as the reference has it:
 * `{"amount": "500"}` in the smallest unit, `"50%"` of the price, or `"$0.05"`.
 */
export const overridesHeader = "settlement-overrides";

/**
 * Takes the header out of an answer: it never reaches the buyer.
 *
 * @returns `override`: the amount; `undefined` without the header; an error where it is no amount
 * up to the price
 */
export function takeOverride(
  answer: HeldAnswer,
  options: { price: bigint; requirements: PaymentRequirements },
): { answer: HeldAnswer; override: bigint | Error | undefined } {
  const found = answer.headers.find(([name]) => name === overridesHeader);
  if (found === undefined) return { answer, override: undefined };
  const headers = answer.headers.filter((each) => each !== found);
  const amount = readAmount(String(found[1]), options);
  const override =
    amount === undefined || amount > options.price
      ? new RangeError("The header Settlement-Overrides has no amount up to the price")
      : amount;
  return { answer: { ...answer, headers }, override };
}

function readAmount(
  text: string,
  { price, requirements }: { price: bigint; requirements: PaymentRequirements },
): bigint | undefined {
  const amount = parseOverrides(text);
  if (amount === undefined) return undefined;
  if (/^\d{1,78}$/.test(amount)) return BigInt(amount);
  const percent = /^(\d{1,3})(?:\.(\d{1,6}))?%$/.exec(amount);
  if (percent !== null) {
    const [, whole = "0", fraction = ""] = percent;
    // A part of a unit is the buyer's.
    return (price * BigInt(whole + fraction.padEnd(6, "0"))) / 100_000_000n;
  }
  const decimals = requirements.extra?.decimals;
  return amount.startsWith("$") && typeof decimals === "number"
    ? parseMoney(amount, decimals)
    : undefined;
}

function parseOverrides(text: string): string | undefined {
  try {
    const read: unknown = JSON.parse(text);
    return isRecord(read) && typeof read.amount === "string" ? read.amount : undefined;
  } catch {
    return undefined;
  }
}
