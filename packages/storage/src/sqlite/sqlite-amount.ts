/**
 * Encodes a uint256 for SQLite, whose integers end at 2^63. The number of its digits comes first,
 * then the digits: `1000000n` is `07:1000000`. Byte order of these texts is the order of the
 * numbers, so `<`, `ORDER BY`, `MIN`, `MAX` and indexes are right. A small amount stays small.
 * Padding to 78 digits would make a table of ten million transfers a gigabyte larger.
 */
export function encodeSqliteAmount(amount: bigint): string {
  const digits = amount.toString();
  return `${digits.length.toString().padStart(2, "0")}:${digits}`;
}

/** The reverse of `encodeSqliteAmount`. Throws a `RangeError` on any other text. */
export function decodeSqliteAmount(text: string): bigint {
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

export function addSqliteAmounts(first: string, second: string): string {
  const sum = decodeSqliteAmount(first) + decodeSqliteAmount(second);
  return encodeSqliteAmount(BigInt.asUintN(256, sum));
}
