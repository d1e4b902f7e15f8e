import { channelPoints } from "../worker-messages.ts";
import type { ChannelReport } from "./channel-run.ts";

/** A report as text, for people. */
export function summariseChannels(report: ChannelReport): string {
  const { buyers, ledger, escrow, rpc, violations } = report;
  const bought = buyers.flatMap((each) => each.bought);
  const kills = [...report.kills.values()].reduce((sum, count) => sum + count, 0);
  const requests = bought.reduce((sum, { attempts }) => sum + attempts, 0);
  const withdrawals = [...escrow.channels.values()].flatMap((each) => each.withdrawals);
  const rows = [...escrow.channels.values()].flatMap((each) => each.claims);
  const charged = ledger.channels.reduce((sum, each) => sum + each.charged, 0n);
  const lines = [
    ["seed", report.seed],
    ["engine", `${report.engine}, ${report.processes} at a time, ${report.seconds.toFixed(0)} s`],
    ["vouchers", `${bought.length} on ${buyers.length} channels, ${requests} requests`],
    ["deaths", `${report.deaths}`],
    ["kills", `${kills}: ${list(inOrder(report.kills))}`],
    ["freezes", `${report.freezes}`],
    ["reorganisations", `${report.reorganisations}`],
    ["rpc answers", `${rpc.requests}, ${rpc.faulty} faulty: ${list([...rpc.faults])}`],
    ["purchases", list([...countBy(bought.map(({ outcome }) => outcome))])],
    ["handler runs", `${report.handlerRuns}`],
    ["withdrawals", `${withdrawals.length}, ended in the run ${sum(buyers)}`],
    ["claims", `${rows.length} rows in ${escrow.transactions} transactions`],
    ["sums", `charged ${charged}, claimed ${escrow.claimed}, settled ${escrow.settled}`],
    ["calm", `${report.calmSeconds.toFixed(1)} s after the faults`],
    ["violations", `${violations.length}`],
  ];
  const table = lines.map(([name = "", value = ""]) => `${name.padEnd(16)}${value}`);
  const where = report.directory === undefined ? [] : [`logs are in ${report.directory}`];
  return [...table, ...violations.map((violation) => `  ${violation}`), ...where].join("\n");
}

function inOrder(kills: ChannelReport["kills"]): [string, number][] {
  const places = new Set([...channelPoints, ...kills.keys()]);
  return [...places].map((place) => [place, kills.get(place) ?? 0]);
}

function sum(buyers: ChannelReport["buyers"]): number {
  return buyers.reduce((total, { finished }) => total + finished, 0);
}

function list(counts: readonly (readonly [name: string, count: number])[]): string {
  return counts.map(([name, count]) => `${name} ${count}`).join(", ");
}

function countBy(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
