import { changeStops, type StopReport, type StopTarget } from "@coinslot/facilitator";
import type { Address, Network } from "@coinslot/protocol";
import { Command } from "commander";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import { readAddress, readNetwork } from "../read-option.ts";
import { showUnsafe } from "../safe-text.ts";
import type { Terminal } from "../terminal.ts";

interface TargetOptions {
  network?: Network;
  route?: string;
  float?: Address;
  ledger?: string;
}

const usualReason = "paused by the operator";

/** `coinslot stop`: new payments are refused, or refunds wait, in all processes of the ledger. */
export function stopCommand(terminal: Terminal, io: Io): Command {
  return addTargetOptions(new Command("stop"))
    .option("--reason <words>", "shown to buyers", usualReason)
    .addHelpText(
      "after",
      `
New payments get 503 with Retry-After and the reason. New refunds of a float wait. Work under way
ends as always. It holds in all processes of the ledger within about two seconds, and until
coinslot start, also after restarts.

Examples:
  coinslot stop --network eip155:9745 --reason "maintenance until noon"
  coinslot stop --route 'GET /weather'
  coinslot stop --float 0x90F79bf6EB2c4f870365E785982E1f101E93b906 --reason "its key may have leaked"`,
    )
    .action(async ({ reason, ...options }: TargetOptions & { reason: string }): Promise<void> => {
      const url = readOperatorPlace(terminal, io, options.ledger);
      for (const target of targetsOf(options)) {
        const change = { operation: "set", target, reason } as const;
        const report = await changeStops({ url, change });
        terminal.out(`${subjectOf(target)} are stopped: ${showUnsafe(reason)}`);
        warn(terminal, target, report);
      }
    });
}

/** `coinslot start`: new payments are taken again, and refunds signed. */
export function startCommand(terminal: Terminal, io: Io): Command {
  return addTargetOptions(new Command("start"))
    .addHelpText(
      "after",
      `
Ends what coinslot stop began. coinslot doctor lists what is stopped.

Example:
  coinslot start --network eip155:9745`,
    )
    .action(async (options: TargetOptions): Promise<void> => {
      const url = readOperatorPlace(terminal, io, options.ledger);
      for (const target of targetsOf(options)) {
        const { stops } = await changeStops({ url, change: { operation: "clear", target } });
        terminal.out(`${subjectOf(target)} are ${target.kind === "float" ? "paid" : "taken"}.`);
        for (const stop of stops) terminal.err(`Still stopped: ${placeOf(stop)}.`);
      }
    });
}

function addTargetOptions(command: Command): Command {
  return command
    .option("--network <network>", "on this network, such as eip155:9745", readNetwork)
    .option("--route <route>", "of this route, as the seller wrote it: 'GET /weather'")
    .option("--float <address>", "refunds from this float account", readAddress)
    .addOption(ledgerOption());
}

function targetsOf({ network, route, float }: TargetOptions): StopTarget[] {
  const targets: StopTarget[] = [];
  if (network !== undefined) targets.push({ kind: "network", name: network });
  if (route !== undefined) targets.push({ kind: "route", name: route });
  if (float !== undefined) targets.push({ kind: "float", name: float });
  if (targets.length > 0) return targets;
  throw new UsageError("Nothing was changed: add --network, --route or --float.");
}

/** Target of a stop switch, at the begin of a sentence. */
function subjectOf(target: StopTarget): string {
  return `New ${target.kind === "float" ? "refunds" : "payments"} ${placeOf(target)}`;
}

const places: Readonly<Record<StopTarget["kind"], (name: string) => string>> = {
  network: (name) => `on ${name}`,
  route: (name) => `of the route ${showUnsafe(name)}`,
  float: (name) => `of the float ${name}`,
};

function placeOf({ kind, name }: StopTarget): string {
  return places[kind](name);
}

const unknownWarnings: Readonly<Record<StopTarget["kind"], string>> = {
  network: "No seller of this ledger has served this network yet: is its name right?",
  route:
    "No payment of this ledger was for this route yet: is it written as in the seller's program?",
  float: "No refund of this ledger was paid from this float yet: is its address right?",
};

function warn(
  terminal: Terminal,
  { kind }: StopTarget,
  { isKnown, runsOlderProgram }: StopReport,
): void {
  if (!isKnown) terminal.err(unknownWarnings[kind]);
  if (runsOlderProgram) {
    terminal.err(
      "A process of an older release uses this ledger, or did a moment ago. It does not know the switch, and goes on: replace it.",
    );
  }
}
