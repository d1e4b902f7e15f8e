import type { TransferRecord } from "./wire/transfer.ts";

const columns = [
  "blockchain",
  "token",
  "blockNumber",
  "blockHash",
  "timestamp",
  "transactionHash",
  "transactionIndex",
  "logIndex",
  "transferIndex",
  "from",
  "to",
  "amount",
  "confirmations",
  "finalized",
] as const satisfies readonly (keyof TransferRecord)[];

/** The first line of a CSV file of transfers (RFC 4180, with CRLF). */
export const csvHeader = `${columns.join(",")}\r\n`;

/** Lines of a CSV file, one for each transfer. */
export function encodeCsv(transfers: readonly TransferRecord[]): string {
  return transfers
    .map((transfer) => `${columns.map((column) => encodeField(transfer[column])).join(",")}\r\n`)
    .join("");
}

/** Encodes one field. A missing value is empty; a value with special characters is quoted. */
function encodeField(value: unknown): string {
  const text = value === undefined || value === null ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
