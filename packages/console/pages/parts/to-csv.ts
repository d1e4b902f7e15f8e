/**
 * A line of CSV by RFC 4180. Texts that a spreadsheet would run as a formula begin with an
 * apostrophe: a buyer chooses a part of a URL.
 */
export function toCsv(cells: readonly (string | number | null)[]): string {
  return cells
    .map((cell) => {
      const text = String(cell ?? "");
      const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
      return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    })
    .join(",");
}
