import { randomBytes } from "node:crypto";
import { Command } from "commander";
import type { Terminal } from "../terminal.ts";

/** Draws a secret of the Standard Webhooks scheme. */
export function drawSecret(): string {
  return `whsec_${randomBytes(32).toString("base64")}`;
}

/** `coinslot webhooks rotate-secret`: a new secret, and the steps of a rotation. */
export function rotateSecretCommand(terminal: Terminal): Command {
  return new Command("rotate-secret")
    .description("draw a secret, and say how it takes the place of the old one")
    .addHelpText(
      "after",
      `
Secrets are in the settings of the sellers, and in no ledger. So the command changes nothing.

Example:
  coinslot webhooks rotate-secret`,
    )
    .action((): void => {
      terminal.out(drawSecret());
      terminal.err(`1. Add it to COINSLOT_WEBHOOK_SECRET behind a comma, or to \`secrets\`, and restart each seller.
   Events have a signature by each secret: receivers verify either.
2. coinslot webhooks list shows the digits of both secrets.
3. Give the new one to the receiver.
4. Take the old one out of the settings, and restart again.`);
    });
}
