/**
 * Places at which a spreadsheet program would read a formula. A tab or a line end may hide one. In
 * many countries a semicolon begins a cell, inside of quotes too.
 */
const formula = /^(?=[=+\-@\t\r\n])|(?=[=+\-@])(?<=;"*)/g;
const needsQuotes = /["',;\t\r\n]|^\s|\s$/;

/**
 * A row of CSV (RFC 4180), with its line end. `null` is an empty cell. An apostrophe leads
 * text that a spreadsheet would run as a formula.
 */
export function formatCsvRow(cells: readonly (string | number | null)[]): string {
  return `${cells.map(formatCell).join(",")}\r\n`;
}

function formatCell(cell: string | number | null): string {
  if (cell === null) return "";
  if (typeof cell === "number") return String(cell);
  const text = cell.replace(formula, "'");
  return needsQuotes.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
