/**
 * Places at which a spreadsheet would read a formula. In many countries a semicolon begins a cell,
 * inside of quotes too.
 */
const formula = /^(?=[=+\-@\t\r\n])|(?=[=+\-@])(?<=;"*)/g;

/**
 * A line of CSV by RFC 4180. An apostrophe leads text that a spreadsheet would run as a formula: a
 * buyer chooses a part of a URL.
 */
export function toCsv(cells: readonly (string | number | null)[]): string {
  return cells
    .map((cell) => {
      const text = String(cell ?? "");
      const safe = text.replace(formula, "'");
      return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    })
    .join(",");
}
