import { expect, it } from "vitest";
import { formatCsvRow } from "./csv.ts";

it("a CSV cell is quoted where it would break a row, and unchanged elsewhere", () => {
  const row = formatCsvRow(["plain", 'say "hi"', "a,b", "two\nlines", " edge", null, 7]);
  expect(row).toBe('plain,"say ""hi""","a,b","two\nlines"," edge",,7\r\n');
});

it("a CSV cell never runs as a formula", () => {
  for (const formula of ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"]) {
    const cell = formatCsvRow([formula]).replace(/^"|"?\r\n$/g, "");
    expect(cell.startsWith("'")).toBe(true);
  }
  // Where semicolons separate cells, each of them may begin one.
  expect(formatCsvRow(["https://shop.example/?;=1+1;"])).toContain(";'=1+1;");
  expect(formatCsvRow(['a;"=1+1";'])).toContain(`;""'=1+1""`);
  // A plain number is not a formula.
  expect(formatCsvRow([-1])).toBe("-1\r\n");
});
