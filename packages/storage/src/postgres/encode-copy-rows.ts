/** A column and the name of its PostgreSQL type. */
export interface CopyColumn {
  name: string;
  type: string;
}

// Appendix of the COPY page, "Binary Format": signature, flags, length of a header extension.
const fileHeader = Buffer.from("PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", "latin1");
const nullLength = -1;
const endOfRows = -1;
const firstBytesPerRow = 200;

/**
 * Rows in the format of `COPY … FROM STDIN (FORMAT binary)`. Supports the types of `dialect.types`:
 * `bigint` from whole numbers, `numeric` from decimal texts without a fraction or a sign, `bytea`,
 * `text`. Throws a `TypeError` on any other type, or a value that does not fit its type.
 */
export function encodeCopyRows(rows: readonly object[], columns: readonly CopyColumn[]): Buffer {
  const output = createOutput(fileHeader.length + rows.length * firstBytesPerRow);
  const fields = columns.map(({ name, type }) => ({ name, type, write: writerOf(type) }));
  output.bytes(fileHeader);
  for (const row of rows) {
    output.int16(columns.length);
    for (const { name, type, write } of fields) {
      const value: unknown = Reflect.get(row, name);
      if (value == null) output.int32(nullLength);
      else if (!write(output, value)) throw new TypeError(`Not a ${type} for ${name}: ${value}`);
    }
  }
  output.int16(endOfRows);
  return output.written();
}

type Output = ReturnType<typeof createOutput>;

/** Growing byte buffer, big-endian; its memory doubles as needed. */
function createOutput(expectedBytes: number) {
  let buffer = Buffer.allocUnsafe(expectedBytes);
  let end = 0;

  function reserve(bytes: number): number {
    if (end + bytes > buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(2 * buffer.length, end + bytes));
      buffer.copy(larger, 0, 0, end);
      buffer = larger;
    }
    const start = end;
    end += bytes;
    return start;
  }

  return {
    int16(value: number): void {
      const start = reserve(2);
      buffer.writeInt16BE(value, start);
    },
    int32(value: number): void {
      const start = reserve(4);
      buffer.writeInt32BE(value, start);
    },
    bytes(value: Uint8Array): void {
      const start = reserve(value.length);
      buffer.set(value, start);
    },
    written: () => buffer.subarray(0, end),
  };
}

/**
 * Writes the length of a value and the value. Returns false, without a write, if the value is none
 * of the type.
 */
type WriteField = (output: Output, value: unknown) => boolean;

function writerOf(type: string): WriteField {
  switch (type) {
    case "bigint":
      return writeBigint;
    case "numeric":
      return writeNumeric;
    case "bytea":
      return writeBytes;
    case "text":
      return writeText;
    default:
      throw new TypeError(`Columns of type ${type} are not copied`);
  }
}

const writeBigint: WriteField = (output, value) => {
  if (!Number.isSafeInteger(value)) return false;
  const whole = Number(value);
  // Two halves, since a BigInt for each number would cost more than all the rest.
  const high = Math.floor(whole / 2 ** 32);
  output.int32(8);
  output.int32(high);
  output.int32((whole - high * 2 ** 32) | 0);
  return true;
};

const writeBytes: WriteField = (output, value) => {
  if (!(value instanceof Uint8Array)) return false;
  output.int32(value.length);
  output.bytes(value);
  return true;
};

const writeText: WriteField = (output, value) => {
  if (typeof value !== "string") return false;
  return writeBytes(output, Buffer.from(value));
};

/** Decimal digits in one digit of PostgreSQL's `numeric`. */
const digitsPerGroup = 4;

/**
 * `numeric_recv`: number of groups, weight of the first, sign, digits after the point, then the
 * groups.
 */
const writeNumeric: WriteField = (output, value) => {
  if (typeof value !== "string" || !/^\d+$/.test(value)) return false;
  const groups: number[] = [];
  for (let end = value.length; end > 0; end -= digitsPerGroup)
    groups.unshift(Number(value.slice(Math.max(0, end - digitsPerGroup), end)));
  output.int32(8 + 2 * groups.length);
  output.int16(groups.length);
  output.int16(groups.length - 1);
  output.int16(0);
  output.int16(0);
  for (const group of groups) output.int16(group);
  return true;
};
