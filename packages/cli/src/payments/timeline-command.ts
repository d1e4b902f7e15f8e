import { type PaymentTimeline, timelineOperation } from "@coinslot/facilitator";
import type { Command } from "commander";
import type { Io } from "../io.ts";
import { moneyText, type ReadOptions, readCommand, runRead, safeText } from "../reads/run-read.ts";
import { formatJson, formatTable, type Terminal } from "../terminal.ts";

/** `coinslot payments timeline`: the way of one payment. */
export function timelineCommand(terminal: Terminal, io: Io): Command {
  return readCommand("timeline")
    .description("tell the way of a payment: its offer, steps, transactions, refunds and events")
    .argument("<id>", "as payments list shows it")
    .addHelpText(
      "after",
      "\nExample:\n  coinslot payments timeline 019aa2b5c1d0a1b2c3d4e5f6a7b8c9d0 --json",
    )
    .action(async (id: string, { ledger, json }: ReadOptions): Promise<void> => {
      const timeline = await runRead({ terminal, io, ledger }, timelineOperation, { id });
      if (json) return terminal.out(formatJson(timeline));
      terminal.out(formatSteps(terminal, timeline));
      if (timeline.offer.at === null) {
        terminal.err("An offer leaves no row: its time is not known.");
      }
      if (timeline.authorization === "pruned") {
        terminal.err("Its signed forms are pruned: retention has deleted them.");
      }
    });
}

function formatSteps(terminal: Terminal, { offer, steps }: PaymentTimeline): string {
  const rows = steps.map(({ at, kind, by, facts }) => [
    instantText(at),
    safeText(kind),
    by === null ? "-" : `${safeText(by.kind)} ${safeText(by.name)}`,
    factsText(facts),
  ]);
  return formatTable(terminal, [
    ["time (UTC)", "step", "by", "facts"],
    [offer.at === null ? "unknown" : instantText(offer.at), "offered", "seller", offerText(offer)],
    ...rows,
  ]);
}

/** The terms, the most telling first. */
function offerText({ route, network, payTo, wire, scheme, ...money }: PaymentTimeline["offer"]) {
  return factsText({ route, amount: moneyText([money]), network, payTo, wire, scheme });
}

function factsText(facts: Readonly<Record<string, string | number | null>>): string {
  return Object.entries(facts)
    .flatMap(([name, value]) => (value === null ? [] : [`${name} ${safeText(String(value))}`]))
    .join(", ");
}

/** ISO 8601 to the millisecond, as people read it. */
function instantText(iso: string): string {
  return iso.slice(0, 23).replace("T", " ");
}
