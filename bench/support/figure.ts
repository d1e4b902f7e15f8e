import { stripVTControlCharacters } from "node:util";

/** One row of the table that a run prints. */
export interface Figure {
  scenario: string;
  ours: string;
  reference: string;
  /** How ours compares, as the goal says it: times as fast, share of the time, share of the gas. */
  ratio: string;
  goal: string;
}

/** Prints rows as a table with aligned columns. */
export function printFigures(figures: readonly Figure[]): void {
  const rows = [
    ["scenario", "ours", "reference", "ratio", "goal"],
    ...figures.map(({ scenario, ours, reference, ratio, goal }) => [
      scenario,
      ours,
      reference,
      ratio,
      goal,
    ]),
  ];
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => stripVTControlCharacters(row[column] ?? "").length)),
  );
  for (const row of rows) {
    console.log(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "));
  }
}
