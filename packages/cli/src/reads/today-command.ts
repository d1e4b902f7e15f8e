import { type Figures, type Today, todayOperation } from "@coinslot/facilitator";
import type { Command } from "commander";
import type { Io } from "../io.ts";
import { formatJson, formatTable, paint, type Terminal } from "../terminal.ts";
import { moneyText, type ReadOptions, readCommand, runRead, safeText } from "./run-read.ts";

/** `coinslot today`: income against last week, and what needs a person. */
export function todayCommand(terminal: Terminal, io: Io): Command {
  return readCommand("today")
    .addHelpText(
      "after",
      `
From midnight in UTC until now, beside the same time a week ago. Then everything that needs a person,
the most urgent first, with the page of the documentation that says what to do. Beside a running
seller it knows balances, chains and disk, too.

Examples:
  coinslot today
  coinslot today --json`,
    )
    .action(async ({ ledger, json }: ReadOptions): Promise<void> => {
      const today = await runRead({ terminal, io, ledger }, todayOperation, {});
      if (json) return terminal.out(formatJson(today));
      terminal.out(formatFigures(terminal, today));
      if (today.source === "ledger") {
        terminal.err("No running seller was asked: balances, chains and disk are not known.");
      }
      if (today.attention.length === 0) return terminal.out("\nNothing needs you.");
      terminal.out(`\n${formatAttention(terminal, today)}`);
    });
}

function formatFigures(terminal: Terminal, { today, lastWeek }: Today): string {
  const both = (name: string, read: (figures: Figures) => string) => [
    name,
    read(today),
    read(lastWeek),
  ];
  const stages = [...new Set([...today.stages, ...lastWeek.stages].map(({ stage }) => stage))];
  return formatTable(terminal, [
    ["", "today", "a week ago"],
    both("income", ({ income }) => moneyText(income)),
    both("sales", ({ payments }) => String(payments.confirmed)),
    // A day may have only taken charges of earlier ones back.
    ...(today.channels.charged.length + lastWeek.channels.charged.length === 0
      ? []
      : [
          both("income of channels, by the day", ({ channels }) => moneyText(channels.charged)),
          both("charges", ({ channels }) => String(channels.charges)),
        ]),
    both("open", ({ payments }) => String(payments.open)),
    both("failed", ({ payments }) => String(payments.failed + payments.expired)),
    both("refused", ({ refusals }) => String(refusals)),
    both("refunds", ({ refunds }) =>
      refunds.count === 0 ? "-" : `${refunds.count}: ${moneyText(refunds.amounts)}`,
    ),
    ...stages.map((stage) =>
      both(`${stage}, p50 and p99`, (figures) => {
        const found = figures.stages.find((each) => each.stage === stage);
        return found === undefined ? "-" : `${found.p50Ms} ms, ${found.p99Ms} ms`;
      }),
    ),
  ]);
}

function formatAttention(terminal: Terminal, { attention }: Today): string {
  return formatTable(terminal, [
    ["urgency", "needs you", "of", "count", "more", "runbook"],
    ...attention.map(({ urgency, code, network, subject, count, detail, runbook }) => [
      urgency === "critical" ? paint(terminal, "red", urgency) : safeText(urgency),
      safeText(code),
      safeText(subject ?? network),
      String(count),
      safeText(detail),
      `docs/${safeText(runbook)}`,
    ]),
  ]);
}
