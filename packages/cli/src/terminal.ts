import { once } from "node:events";
import { stripVTControlCharacters, styleText } from "node:util";
import type { EnvironmentFile } from "@coinslot/hosting/environment";
import { escapeUnsafeInJson } from "./safe-text.ts";

/** A command's environment and outputs. */
export interface Terminal {
  /** Results: the output for a script. */
  out(text: string): void;
  /** Everything else: progress, warnings, errors. */
  err(text: string): void;
  /** Asks a yes-or-no question; `undefined` without a person at the terminal. */
  confirm: ((question: string) => Promise<boolean>) | undefined;
  isColourful: boolean;
  env: Readonly<Record<string, string | undefined>>;
  /** The .env file from which a part of `env` came. */
  envFile?: EnvironmentFile | undefined;
  signal: AbortSignal;
}

/** Resolves when the command is interrupted. To take the signal is to listen: before it is said. */
export async function untilInterrupted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, "abort");
}

type Style = Parameters<typeof styleText>[0];

/** Colours a text, on a terminal with colours. */
export function paint(terminal: Terminal, style: Style, text: string): string {
  return terminal.isColourful ? styleText(style, text, { validateStream: false }) : text;
}

/** Aligned columns; the first row is the heading. */
export function formatTable(terminal: Terminal, rows: readonly (readonly string[])[]): string {
  const [heading = []] = rows;
  const widths = heading.map((_, column) =>
    Math.max(...rows.map((row) => stripVTControlCharacters(row[column] ?? "").length)),
  );
  return rows
    .map((row, index) => {
      const line = row
        .map((cell, column) => {
          const width = stripVTControlCharacters(cell).length;
          return cell + " ".repeat((widths[column] ?? 0) - width);
        })
        .join("  ")
        .trimEnd();
      return index === 0 ? paint(terminal, "dim", line) : line;
    })
    .join("\n");
}

/** Aligned pairs of a name and a value. */
export function formatFacts(terminal: Terminal, facts: Readonly<Record<string, string>>): string {
  const width = Math.max(...Object.keys(facts).map((name) => name.length));
  return Object.entries(facts)
    .map(([name, value]) => `${paint(terminal, "dim", name.padEnd(width))}  ${value}`)
    .join("\n");
}

/**
 * JSON for scripts: amounts, which may be beyond the range of a JSON number, as decimal strings.
 * Characters that would steer a terminal are escaped.
 */
export function formatJson(value: unknown): string {
  const json = JSON.stringify(
    value,
    (_key, member) => (typeof member === "bigint" ? member.toString() : member),
    2,
  );
  return escapeUnsafeInJson(json);
}
