// Plain JavaScript: a worker thread of a program that runs from its sources loads it too.

/**
 * Encodes a uint256 for SQLite, whose integers end at 2^63. The number of its digits comes first,
 * then the digits: `1000000n` is `07:1000000`. Byte order of these texts is the order of the
 * numbers, so `<`, `ORDER BY`, `MIN`, `MAX` and indexes are right. A small amount stays small.
 * Padding to 78 digits would make a table of ten million transfers a gigabyte larger.
 *
 * @param {bigint} amount
 * @returns {string}
 */
export function encodeSqliteAmount(amount) {
  const digits = amount.toString();
  return `${digits.length.toString().padStart(2, "0")}:${digits}`;
}

/**
 * The reverse of `encodeSqliteAmount`. Throws a `RangeError` on any other text.
 *
 * @param {string} text
 * @returns {bigint}
 */
export function decodeSqliteAmount(text) {
  const digits = text.slice(3);
  if (!/^\d\d:\d+$/.test(text) || Number(text.slice(0, 2)) !== digits.length) {
    throw new RangeError(`Not a stored amount: ${text}`);
  }
  return BigInt(digits);
}

/**
 * The functions that the SQLite engine registers: the sum of rows, and of two amounts modulo 2^256;
 * all encoded.
 */
export const sqliteSum = "coinslot_sum";
export const sqliteAdd = "coinslot_add";

/**
 * @param {string} first
 * @param {string} second
 * @returns {string}
 */
export function addSqliteAmounts(first, second) {
  const sum = decodeSqliteAmount(first) + decodeSqliteAmount(second);
  return encodeSqliteAmount(BigInt.asUintN(256, sum));
}

/**
 * The definition of `sqliteSum`. The running total is text, since `@photostructure/sqlite` cuts a
 * bigint down to 64 bits.
 */
export const sqliteSumAggregate = {
  start: encodeSqliteAmount(0n),
  /**
   * @param {string} total
   * @param {unknown} value
   * @returns {string}
   */
  step: (total, value) =>
    typeof value === "string"
      ? encodeSqliteAmount(decodeSqliteAmount(total) + decodeSqliteAmount(value))
      : total,
  deterministic: true,
};
