import type { TransferProgress } from "@coinslot/bridge";
import { paint, type Terminal } from "../terminal.ts";

/** Prints each step of a transfer as a line. */
export function printProgress(terminal: Terminal): (progress: TransferProgress) => void {
  return (progress) => terminal.err(`${paint(terminal, "cyan", "•")} ${inWords(progress)}`);
}

function inWords(progress: TransferProgress): string {
  switch (progress.state) {
    case "approving":
      return `approving, in ${progress.hash}`;
    case "approved":
      return "approved";
    case "sending":
      return `sending, in ${progress.hash}`;
    case "sent":
      return "sent: the tokens have left";
    case "pending":
      return "waiting for the transaction to be mined";
    case "in_flight":
      return `on the way to ${progress.targetChain}, as LayerZero message ${progress.guid}`;
    case "received":
      return `arrived on ${progress.targetChain}, waiting for confirmations`;
    case "delivered":
      return `delivered on ${progress.targetChain}, in ${progress.targetHash}`;
  }
}
