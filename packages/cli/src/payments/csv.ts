/** Beginnings of a formula in a spreadsheet program; a tab or a line end may hide one. */
const formula = /^[=+\-@\t\r\n]/;
const needsQuotes = /["',;\t\r\n]|^\s|\s$/;

/**
 * A row of CSV (RFC 4180), with its line end. `null` is an empty cell. An apostrophe leads a cell
 * that a spreadsheet would run as a formula, which makes it text.
 */
export function formatCsvRow(cells: readonly (string | number | null)[]): string {
  return `${cells.map(formatCell).join(",")}\r\n`;
}

function formatCell(cell: string | number | null): string {
  if (cell === null) return "";
  if (typeof cell === "number") return String(cell);
  const text = formula.test(cell) ? `'${cell}` : cell;
  return needsQuotes.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
