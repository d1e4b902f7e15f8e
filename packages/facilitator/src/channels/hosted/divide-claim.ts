import type { ChannelCallAnswer } from "@coinslot/protocol";
import { readClaimTime } from "../claims/claim-deadlines.ts";
import type { CallerRow } from "./claim-rows.ts";
import type { HostedNetwork } from "./hosted-context.ts";
import { readAll, readHead } from "./read-channel.ts";

/** The last part of a delay, in which rows are claimed alone. */
const nearShare = 10;

/**
 * Divides the rows of a claim. Near the end of its delay, a payer may take its money away in front of a
 * claim, which reverts then. So such a row goes alone, as far as the relayers have room, and never with
 * those that have time.
 *
 * @throws RpcError, ZodError, ChannelReadError
 */
export async function divideClaim(
  network: HostedNetwork,
  rows: readonly CallerRow[],
): Promise<CallerRow[][]> {
  const ids = rows.map(({ channelId }) => channelId);
  const readings = await readAll(network, ids, await readHead(network));
  const time = await readClaimTime(network.escrow);
  const near = rows.filter(({ config: { withdrawDelay } }, index) => {
    const withdrawal = readings[index]?.withdrawal;
    if (withdrawal === undefined) return false;
    return withdrawal.initiatedAt + withdrawDelay - time < withdrawDelay / nearShare;
  });
  const { maxInFlight } = network.escrow.settlement.network;
  const alone = near.slice(0, maxInFlight).map((row) => [row]);
  const others = near.slice(maxInFlight);
  const timely = rows.filter((row) => !near.includes(row));
  return [timely, ...alone, others].filter(({ length }) => length > 0);
}

/** One answer for all parts of a claim: what is worst for the caller, and the first hash. */
export function joinAnswers(answers: readonly ChannelCallAnswer[]): ChannelCallAnswer {
  const transaction = answers.find((each) => each.transaction !== undefined)?.transaction;
  const refused = answers.flatMap((each) => (each.state === "refused" ? [each] : []));
  const [first] = refused;
  if (first !== undefined) {
    const message = refused.flatMap((each) => each.message ?? []).join("; ");
    return { ...first, ...(message === "" ? {} : { message }), transaction };
  }
  const state = answers.some((each) => each.state === "pending") ? "pending" : "done";
  return { state, transaction };
}
