import { act } from "../api/act.ts";
import { ActDialog } from "../parts/act-dialog.tsx";
import { networkName } from "../parts/format-parts.tsx";

/** Asks before the seller claims: one channel, or all that is worth its gas. */
export function ClaimDialog({ channel, onClose }: { channel?: string; onClose: () => void }) {
  async function run(): Promise<string> {
    const argument = channel === undefined ? {} : { channel: `0x${channel.slice(2)}` as const };
    const { claims } = await act("channels.claim", argument, { subject: channel ?? "all" });
    return claims
      .map(({ network, sent, refused, waiting }) =>
        [
          `${networkName(network)}: ${sent === 0 ? "nothing was sent" : `${sent} on their way`}`,
          ...(refused.length === 0 ? [] : [`${refused.length} refused`]),
          ...(waiting === null ? [] : [`the rest waits (${waiting})`]),
        ].join(", "),
      )
      .join("; ");
  }
  const title = channel === undefined ? "Claim all channels" : "Claim the channel";
  return (
    <ActDialog title={title} verb="Claim" run={run} onClose={onClose}>
      <p>
        The seller signs and sends the claim now, and pays its gas. A claim that is on its way is
        not sent twice.
      </p>
    </ActDialog>
  );
}
