import { type ChannelClaims, claimChannelsOperation, operatorAt } from "@coinslot/facilitator";
import type { Network } from "@coinslot/protocol";
import { Command } from "commander";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import { readNetwork } from "../read-option.ts";
import { moneyText, safeText } from "../reads/run-read.ts";
import { formatJson, type Terminal } from "../terminal.ts";

/** `coinslot channels claim`: a running seller claims what is unclaimed. */
export function claimCommand(terminal: Terminal, io: Io): Command {
  return new Command("claim")
    .description("of a seller: claim what is unclaimed now, of one channel or of all")
    .argument("[id]", "the channel's whole id; without it, all that is worth its gas")
    .option("--network <network>", "only on this network, such as eip155:9745", readNetwork)
    .addOption(ledgerOption())
    .option("--json", "print JSON, as the operation returns it")
    .addHelpText(
      "after",
      `
The running seller signs and sends the claims; without one, nothing is claimed. It claims by itself, too:
this is for a stop, a change of terms, or a claim that failed. A repetition sends nothing twice.

Examples:
  coinslot channels claim
  coinslot channels claim 0x72e955e8695a0f1db8bb1d15a1f3ce1c4bd1f8e4bd0a6a9a2a0b1a2b3c4d5e6f`,
    )
    .action(
      async (
        id: string | undefined,
        options: { network?: Network; ledger?: string; json?: true },
      ): Promise<void> => {
        const { network, ledger, json } = options;
        const channel = id === undefined ? undefined : readId(id);
        const place = readOperatorPlace(terminal, io, ledger);
        // From here on, a signal does not end it unreported.
        terminal.signal.throwIfAborted();
        const result = await operatorAt(place).run(claimChannelsOperation, { network, channel });
        if (json) return terminal.out(formatJson(result));
        for (const claims of result.claims) terminal.out(describe(claims));
      },
    );
}

function readId(id: string): `0x${string}` {
  if (/^0x[0-9a-fA-F]{64}$/.test(id)) return `0x${id.slice(2)}`;
  throw new UsageError(
    "A claim needs the whole id of a channel: see coinslot channels list --seller.",
  );
}

function describe({ network, sent, amounts, refused, waiting }: ChannelClaims): string {
  const count = sent === 1 ? "1 channel" : `${sent} channels`;
  const lines = [
    sent === 0
      ? `${network}: nothing was sent.`
      : `${network}: the claim of ${count} is on its way: ${moneyText(amounts)}.`,
    ...refused.map(({ channel, error }) => `  ${channel} was refused: ${safeText(error)}`),
    ...(waiting === null ? [] : [`  The rest waits: ${causes[waiting] ?? safeText(waiting)}.`]),
  ];
  return lines.join("\n");
}

/** Causes by their codes; a later release may have others. */
const causes: Partial<Record<string, string>> = {
  no_relayer: "no relayer of this process has room",
  too_dear: "gas costs more than maxFeePerGas",
  no_signature: "the key of the claims has not signed",
  no_funds: "no relayer can pay for gas",
  refused: "the relayer has changed; try again",
  no_key: "the key of the channels' authorizer is not configured",
};
