import type { FaultReport } from "./fault-run.ts";
import { killPoints, refundPoints } from "./worker-messages.ts";

/** A report as text, for people. */
export function summarise(report: FaultReport): string {
  const { bought, ledger, rpc, violations } = report;
  const kills = [...report.kills.values()].reduce((sum, count) => sum + count, 0);
  const places = [...killPoints, ...refundPoints, "any moment" as const];
  const lines = [
    ["seed", report.seed],
    ["engine", `${report.engine}, ${report.processes} at a time, ${report.seconds.toFixed(0)} s`],
    ["payments", `${bought.length}, ${sum(bought.map(({ attempts }) => attempts))} requests`],
    ["wires", list([...countBy(bought, ({ purchase }) => purchase.wire)])],
    ["deaths", `${report.deaths}`],
    ["kills", `${kills}: ${list(places.map((place) => [place, report.kills.get(place) ?? 0]))}`],
    ["freezes", `${report.freezes}`],
    ["reorganisations", `${report.reorganisations}, took back ${report.takenBack} payments`],
    ["rpc answers", `${rpc.requests}, ${rpc.faulty} faulty: ${list([...rpc.faults])}`],
    ["buyers", list([...countBy(bought, ({ outcome }) => outcome.kind)])],
    ["interferences", list([...countBy(bought, ({ purchase }) => purchase.interference)])],
    ["handler runs", `${report.handlerRuns}`],
    ["ledger", list([...countBy(ledger, ({ state }) => state)])],
    ["refunds", list([...countBy(report.refunds, ({ state }) => state)])],
    ["webhooks", `${report.webhooks.events} events, ${report.webhooks.requests} taken in`],
    ["books", report.books],
    ["calm", `${report.calmSeconds.toFixed(1)} s after the faults`],
    ["violations", `${violations.length}`],
  ];
  const table = lines.map(([name = "", value = ""]) => `${name.padEnd(16)}${value}`);
  const where = report.directory === undefined ? [] : [`logs are in ${report.directory}`];
  return [...table, ...violations.map((violation) => `  ${violation}`), ...where].join("\n");
}

function list(counts: readonly (readonly [name: string, count: number])[]): string {
  return counts.map(([name, count]) => `${name} ${count}`).join(", ");
}

function countBy<Item>(items: readonly Item[], name: (item: Item) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(name(item), (counts.get(name(item)) ?? 0) + 1);
  return counts;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
