/**
 * Money for people: all significant decimals, at least two, with groups of three digits.
 *
 * @param amount in the token's smallest unit, as a decimal string or bigint
 * @param decimals of the token
 * @example formatAmount("1234500", 6) // "1.2345"
 * @throws SyntaxError where the amount is no whole number
 */
export function formatAmount(amount: string | bigint, decimals: number): string {
  const value = BigInt(amount);
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals).replace(/\B(?=(\d{3})+$)/g, ",");
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "");
  const shown = decimals === 0 ? "" : `.${fraction.padEnd(Math.min(2, decimals), "0")}`;
  return `${value < 0n ? "−" : ""}${whole}${shown}`;
}

/** An address or a hash without its middle, such as `0x1234…abcd`. Short texts stay whole. */
export function shorten(text: string): string {
  return text.length <= 14 ? text : `${text.slice(0, 6)}…${text.slice(-4)}`;
}

const steps = [
  ["second", 60],
  ["minute", 60],
  ["hour", 24],
  ["day", 30],
  ["month", 12],
] as const;

/**
 * A time as people say it, such as "3 minutes ago" or "in 2 hours".
 *
 * @param time ISO 8601, or milliseconds since 1970
 * @param now milliseconds since 1970
 * @param language BCP 47
 */
export function formatAge(time: string | number, now: number, language = "en"): string {
  const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" });
  let value = (new Date(time).getTime() - now) / 1000;
  if (Math.abs(value) < 5) return relative.format(0, "second");
  for (const [unit, size] of steps) {
    // Rounded before it is compared: 59.7 s are one minute, not 60 seconds.
    if (Math.abs(Math.round(value)) < size) return relative.format(Math.round(value), unit);
    value /= size;
  }
  return relative.format(Math.round(value), "year");
}

/** The exact time with its zone, for a hover. */
export function formatTime(time: string | number, language = "en"): string {
  const format = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "long" });
  return format.format(new Date(time));
}

/** A count with groups of three digits. */
export function formatCount(count: number, language = "en"): string {
  return new Intl.NumberFormat(language).format(count);
}

/** A duration of machines, such as "840 µs", "12 ms" or "3.4 s". */
export function formatDuration(seconds: number): string {
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  return seconds < 100 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds)} s`;
}

/** An amount of whole tokens for people, such as "1,234.50" for "1234.5". */
export function formatDecimal(amount: string): string {
  const [whole = "", fraction = ""] = amount.split(".");
  const decimals = Math.max(2, fraction.length);
  return formatAmount(`${whole}${fraction.padEnd(decimals, "0")}`, decimals);
}

const small =
  "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(
    " ",
  );
const tens = "- - twenty thirty forty fifty sixty seventy eighty ninety".split(" ");
const groups = ["", "thousand", "million", "billion", "trillion", "quadrillion"];

/**
 * An amount of whole tokens in English words, for a question before money moves: "1.05" is "one
 * point zero five". Beyond quadrillions it stays in digits.
 */
export function spellAmount(amount: string): string {
  const [whole = "0", fraction = ""] = amount.split(".");
  const digits = fraction.replace(/0+$/, "");
  const spelled = [...digits].map((digit) => small[Number(digit)]).join(" ");
  return spelled === "" ? spellWhole(whole) : `${spellWhole(whole)} point ${spelled}`;
}

function spellWhole(digits: string): string {
  const value = BigInt(digits);
  if (value === 0n) return "zero";
  if (value >= 10n ** 18n) return digits;
  const parts: string[] = [];
  let rest = value;
  for (const group of groups) {
    const part = Number(rest % 1000n);
    if (part > 0) parts.unshift(group === "" ? spellGroup(part) : `${spellGroup(part)} ${group}`);
    rest /= 1000n;
  }
  return parts.join(" ");
}

function spellGroup(value: number): string {
  if (value < 20) return small[value] ?? "";
  if (value < 100) {
    const unit = value % 10;
    return `${tens[Math.floor(value / 10)]}${unit === 0 ? "" : `-${small[unit]}`}`;
  }
  const rest = value % 100;
  const hundred = `${small[Math.floor(value / 100)]} hundred`;
  return rest === 0 ? hundred : `${hundred} ${spellGroup(rest)}`;
}
