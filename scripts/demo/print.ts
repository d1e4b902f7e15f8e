import { stripVTControlCharacters, styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];

/** Colours a text on a terminal, and leaves it alone in a pipe or under `NO_COLOR`. */
export function paint(style: Style, text: string): string {
  const isColourful = process.stdout.isTTY === true && process.env.NO_COLOR === undefined;
  return isColourful ? styleText(style, text) : text;
}

/** Prints the heading of a step. */
export function step(number: number, title: string): void {
  console.log(`\n${paint(["bold", "cyan"], `${number}  ${title}`)}`);
}

/** Prints aligned pairs of a name and a value. */
export function facts(pairs: Record<string, string>): void {
  const width = Math.max(...Object.keys(pairs).map((name) => name.length));
  for (const [name, value] of Object.entries(pairs)) {
    console.log(`   ${paint("dim", name.padEnd(width))}  ${value}`);
  }
}

/** Prints a table whose columns are as wide as they need to be; all but the first align right. */
export function table(rows: string[][]): void {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => stripVTControlCharacters(row[column] ?? "").length)),
  );
  rows.forEach((row, index) => {
    const cells = row.map((cell, column) => {
      const padding = " ".repeat((widths[column] ?? 0) - stripVTControlCharacters(cell).length);
      return column === 0 ? cell + padding : padding + cell;
    });
    const line = cells.join("   ");
    console.log(`   ${index === 0 ? paint("dim", line) : line}`);
  });
}
