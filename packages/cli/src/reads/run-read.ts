import { type Operation, operatorAt } from "@coinslot/facilitator";
import { Command } from "commander";
import type * as z from "zod";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import { replaceUnsafe } from "../safe-text.ts";
import type { Terminal } from "../terminal.ts";

/** Options of every command that reads by an operation. */
export interface ReadOptions {
  ledger?: string;
  json?: true;
}

/** A command with `--ledger` and `--json`. */
export function readCommand(name: string): Command {
  return new Command(name)
    .addOption(ledgerOption())
    .option("--json", "print JSON, as the operation returns it");
}

/** Runs a read of the operator where the environment says, or `--ledger`. */
export function runRead<Argument extends z.ZodType, Result extends z.ZodType>(
  { terminal, io, ledger }: { terminal: Terminal; io: Io; ledger: string | undefined },
  operation: Operation<Argument, Result>,
  argument: z.input<Argument>,
): Promise<z.output<Result>> {
  return operatorAt(readOperatorPlace(terminal, io, ledger)).run(operation, argument);
}

const longest = 60;

/** A text of others in a row: without characters that steer a terminal, and not too long. */
export function safeText(text: string | null | undefined): string {
  if (text === null || text === undefined || text === "") return "-";
  const safe = replaceUnsafe(text);
  return safe.length > longest ? `${safe.slice(0, longest - 1)}…` : safe;
}

/** ISO 8601 as people read it, in UTC. */
export function timeText(iso: string | null): string {
  return iso === null ? "-" : iso.slice(0, 19).replace("T", " ");
}

/** Sums by token, for people. */
export function moneyText(
  sums: readonly { amount: string | null; value: string; symbol: string | null; asset: string }[],
): string {
  if (sums.length === 0) return "-";
  return sums
    .map(({ amount, value, symbol, asset }) =>
      amount === null ? `${value} units of ${asset}` : `${amount} ${symbol ?? ""}`.trim(),
    )
    .join(" + ");
}
