import { type CycleSummary, type Inspector, summarise } from "@coinslot/inspector";
import { printable } from "../pay/printable.ts";
import { escapeUnsafeInJson } from "../safe-text.ts";
import { paint, type Terminal } from "../terminal.ts";

/** Time without a payment after which an offer gets its line. */
const offerMs = 2_000;

const colours = {
  offered: "dim",
  paying: "dim",
  paid: "green",
  "no receipt": "yellow",
  refused: "red",
  unclear: "yellow",
  abandoned: "yellow",
} as const satisfies Record<CycleSummary["state"], string>;

/**
 * Prints a line for each cycle: once its payment is answered, and again for each further payment.
 * An offer that stays unpaid has its line after a while, and at the end.
 *
 * @returns prints the lines that are still missing, and ends the report
 */
export function reportCycles(
  terminal: Terminal,
  inspector: Inspector,
  { isJson }: { isJson: boolean },
): () => void {
  /** Payments in a cycle's latest line. */
  const printed = new Map<number, number>();
  const timers = new Map<number, NodeJS.Timeout>();

  function print(id: number): void {
    const cycle = inspector.find(id);
    if (cycle === undefined) return;
    const summary = summarise(cycle);
    if (printed.get(id) === summary.payments) return;
    printed.set(id, summary.payments);
    const line = isJson
      ? escapeUnsafeInJson(JSON.stringify(summary))
      : formatLine(terminal, summary);
    terminal.out(line);
  }

  const leave = inspector.subscribe((id) => {
    const cycle = inspector.find(id);
    if (cycle === undefined) return;
    const { state, payments } = summarise(cycle);
    if (state === "offered") {
      if (!timers.has(id)) timers.set(id, setTimeout(() => print(id), offerMs).unref());
      return;
    }
    clearTimeout(timers.get(id));
    timers.delete(id);
    if (state === "paying" || printed.get(id) === payments) return;
    // The signer and the receipt's transaction are looked at beside the traffic.
    void inspector.settled().then(() => print(id));
  });

  return () => {
    leave();
    for (const timer of timers.values()) clearTimeout(timer);
    for (const { id } of inspector.cycles()) print(id);
  };
}

function formatLine(terminal: Terminal, summary: CycleSummary): string {
  const { id, state, method, target, payments, startedAt, tookMs, status, wire, price } = summary;
  const { network, transaction, gasUsed, failed } = summary;
  const time = new Date(startedAt).toTimeString().slice(0, 8);
  const answered = status === undefined ? "" : ` ${status}`;
  const parts = [
    paint(terminal, "dim", `${time} #${id}`),
    printable(`${method} ${target}`),
    paint(terminal, colours[state], `${state}${answered}`),
    price === undefined ? undefined : printable(price),
    network === undefined ? undefined : printable(network),
    wire,
    payments > 1 ? `${payments} payments` : undefined,
    tookMs === undefined ? undefined : `${tookMs} ms`,
    gasUsed === undefined ? undefined : `${gasUsed} gas`,
    transaction === undefined ? undefined : paint(terminal, "dim", printable(transaction)),
  ];
  const line = parts.filter((part) => part !== undefined).join("  ");
  if (failed === undefined) return line;
  return `${line}\n    ${paint(terminal, "red", printable(failed.check))}: ${printable(failed.says)}`;
}
