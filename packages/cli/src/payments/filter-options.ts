import { type PaymentFilter, type PaymentState, paymentStates } from "@coinslot/facilitator";
import type { Address, Network } from "@coinslot/protocol";
import { type Command, InvalidArgumentError, Option } from "commander";
import { ledgerOption } from "../ledger-url.ts";
import { readAddress, readNetwork } from "../read-option.ts";

/** Options that select payments and their ledger. */
export interface FilterOptions {
  state?: PaymentState;
  network?: Network;
  token?: Address;
  route?: string;
  payer?: Address;
  from?: number;
  to?: number;
  ledger?: string;
}

/**
 * Adds `--state`, `--network`, `--token`, `--route`, `--payer`, `--from`, `--to` and `--ledger`.
 */
export function addFilterOptions(command: Command): Command {
  return addTimeOptions(command)
    .addOption(new Option("--state <state>", "only those in this state").choices(paymentStates))
    .option("--network <network>", "only those on this network, such as eip155:9745", readNetwork)
    .option("--token <address>", "only those in this token", readAddress)
    .option("--route <route>", "only those of this route, such as 'GET /weather'")
    .option("--payer <address>", "only those of this payer", readAddress);
}

/** Adds `--from`, `--to` and `--ledger`. */
export function addTimeOptions(command: Command): Command {
  return addTimeRange(command).addOption(ledgerOption());
}

/** Adds `--from` and `--to`. */
export function addTimeRange(command: Command): Command {
  return command
    .option("--from <time>", "only those since then: 2026-11-20, 2026-11-20T18:00Z, 24h", readTime)
    .option("--to <time>", "only those before then", readTime);
}

/** The times of a range as operations take them: ISO 8601. */
export function isoTimes({ from, to }: Pick<FilterOptions, "from" | "to">) {
  const isoOf = (time: number | undefined) =>
    time === undefined ? undefined : new Date(time).toISOString();
  return { from: isoOf(from), to: isoOf(to) };
}

export function toFilter(options: FilterOptions): PaymentFilter {
  const { state, network, token, route, payer, from, to } = options;
  return { state, network, asset: token, route, payer, createdFrom: from, createdBefore: to };
}

const unitsMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };
const moment = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?(Z|[+-]\d{2}:\d{2})?)?$/;

/** Unix milliseconds of a day, a moment (UTC by default), or a duration before now. */
function readTime(text: string): number {
  const [, count, unit = ""] = /^([0-9]{1,6})([mhd])$/.exec(text) ?? [];
  const unitMs = unitsMs[unit];
  if (count !== undefined && unitMs !== undefined) return Date.now() - Number(count) * unitMs;
  const parts = moment.exec(text);
  const isLocal = text.includes("T") && parts?.[1] === undefined;
  const time = parts === null ? Number.NaN : Date.parse(isLocal ? `${text}Z` : text);
  if (!Number.isNaN(time)) return time;
  throw new InvalidArgumentError("expected a time such as 2026-11-20, 2026-11-20T18:00Z or 24h");
}
