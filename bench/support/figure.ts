/** One row: the measurement, its comparison, and its goal. */
export interface Figure {
  scenario: string;
  ours: Measure;
  /** The same of the reference implementation, in the same run. */
  reference?: Measure;
  ratio?: Ratio;
  goal?: Goal;
}

/** A value with its unit, such as `/s`, `ms` or `MB`; a value without a unit is a count. */
export interface Measure {
  value: number;
  unit: string;
  /** A condition that differs from that of the row, such as `128 at once`. */
  note?: string;
}

/** Ours as a multiple of something else. */
interface Ratio {
  value: number;
  /** The thing that ours is a multiple of; the reference implementation unless named. */
  to?: string;
  /** The same in each turn. */
  turns?: readonly number[];
}

/** A bound of `ours`, or of the ratio. */
type Goal = { of: "ours" | "ratio" } & ({ atLeast: number } | { atMost: number });

/** The verdict on a goal; a row without a goal has none. */
export type Verdict = "reached" | "missed";

/** @returns whether the row's goal was reached, or `undefined` where it has none */
export function verdictOf({ ours, ratio, goal }: Figure): Verdict | undefined {
  if (goal === undefined) return undefined;
  const value = goal.of === "ours" ? ours.value : (ratio?.value ?? Number.NaN);
  const isReached = "atLeast" in goal ? value >= goal.atLeast : value <= goal.atMost;
  return isReached ? "reached" : "missed";
}

/** The rows as JSON, each with its verdict. */
export function formatJson(figures: readonly Figure[]): string {
  const rows = figures.map((figure) => {
    const verdict = verdictOf(figure);
    return verdict === undefined ? figure : { ...figure, verdict };
  });
  return JSON.stringify(rows, null, 2);
}

/** The rows as a table with aligned columns. */
export function formatTable(figures: readonly Figure[]): string {
  const rows = [["scenario", "ours", "reference", "ratio", "goal", "verdict"]];
  for (const figure of figures) {
    const { scenario, ours, reference, ratio, goal } = figure;
    rows.push([
      scenario,
      formatMeasure(ours),
      reference === undefined ? "" : formatMeasure(reference),
      ratio === undefined ? "" : formatRatio(ratio),
      goal === undefined ? "" : formatGoal(goal, ours.unit),
      verdictOf(figure) ?? "",
    ]);
  }
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function formatMeasure({ value, unit, note }: Measure): string {
  const number = formatNumber(value);
  const measure = unit === "" ? number : `${number} ${unit}`;
  return note === undefined ? measure : `${measure} (${note})`;
}

function formatRatio({ value, to, turns }: Ratio): string {
  const each = turns === undefined ? "" : ` (${turns.map(formatNumber).join(", ")})`;
  return `${formatNumber(value)}x${to === undefined ? "" : ` of ${to}`}${each}`;
}

function formatGoal(goal: Goal, unit: string): string {
  const [sign, bound] = "atLeast" in goal ? [">=", goal.atLeast] : ["<=", goal.atMost];
  return `${sign} ${formatNumber(bound)}${goal.of === "ratio" ? "x" : ` ${unit}`}`.trimEnd();
}

/** Three digits that count, whole numbers from a hundred on. */
function formatNumber(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en");
  return Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 3 });
}
