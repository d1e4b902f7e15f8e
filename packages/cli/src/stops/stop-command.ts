import { changeStops, type StopReport, type StopTarget } from "@coinslot/facilitator";
import { isNetwork, type Network } from "@coinslot/protocol";
import { Command, InvalidArgumentError } from "commander";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import { showUnsafe } from "../safe-text.ts";
import type { Terminal } from "../terminal.ts";

interface TargetOptions {
  network?: Network;
  route?: string;
  ledger?: string;
}

const usualReason = "paused by the operator";

/** `coinslot stop`: new payments are refused, in all processes of the ledger. */
export function stopCommand(terminal: Terminal, io: Io): Command {
  return addTargetOptions(new Command("stop"))
    .option("--reason <words>", "shown to buyers", usualReason)
    .addHelpText(
      "after",
      `
New payments get 503 with Retry-After and the reason. Those under way end as always. It holds in all
processes of the ledger within about two seconds, and until coinslot start, also after restarts.

Examples:
  coinslot stop --network eip155:9745 --reason "maintenance until noon"
  coinslot stop --route 'GET /weather'`,
    )
    .action(async ({ reason, ...options }: TargetOptions & { reason: string }): Promise<void> => {
      const url = readOperatorPlace(terminal, io, options.ledger);
      for (const target of targetsOf(options)) {
        const change = { operation: "set", target, reason } as const;
        const report = await changeStops({ url, change });
        terminal.out(`New payments ${placeOf(target)} are stopped: ${showUnsafe(reason)}`);
        warn(terminal, target, report);
      }
    });
}

/** `coinslot start`: new payments are taken again. */
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
        terminal.out(`New payments ${placeOf(target)} are taken.`);
        for (const stop of stops) terminal.err(`Still stopped: ${placeOf(stop)}.`);
      }
    });
}

function addTargetOptions(command: Command): Command {
  return command
    .option("--network <network>", "on this network, such as eip155:9745", readNetwork)
    .option("--route <route>", "of this route, as the seller wrote it: 'GET /weather'")
    .addOption(ledgerOption());
}

function readNetwork(text: string): Network {
  if (!isNetwork(text)) throw new InvalidArgumentError("expected a network such as eip155:9745");
  return text;
}

function targetsOf({ network, route }: TargetOptions): StopTarget[] {
  const targets: StopTarget[] = [];
  if (network !== undefined) targets.push({ kind: "network", name: network });
  if (route !== undefined) targets.push({ kind: "route", name: route });
  if (targets.length > 0) return targets;
  throw new UsageError("Nothing was changed: add --network or --route.");
}

function placeOf({ kind, name }: StopTarget): string {
  return kind === "network" ? `on ${name}` : `of the route ${showUnsafe(name)}`;
}

function warn(
  terminal: Terminal,
  { kind }: StopTarget,
  { isKnown, runsOlderProgram }: StopReport,
): void {
  if (!isKnown) {
    terminal.err(
      kind === "network"
        ? "No seller of this ledger has served this network yet: is its name right?"
        : "No payment of this ledger was for this route yet: is it written as in the seller's program?",
    );
  }
  if (runsOlderProgram) {
    terminal.err(
      "A process of an older release uses this ledger, or did a moment ago. It does not know the switch, and goes on selling: replace it.",
    );
  }
}
