import type { ChannelCallAnswer } from "@coinslot/protocol";
import { zeroAddress } from "viem";
import { readClaimTime } from "../claims/claim-deadlines.ts";
import type { CallerRow } from "./claim-rows.ts";
import type { HostedNetwork } from "./hosted-context.ts";
import { readAll, readHead, takesOf } from "./read-channel.ts";

/** The last part of a delay, in which rows are claimed alone. */
const nearShare = 10;

/**
 * Divides the rows of a claim. Near the end of its delay, a payer may empty its channel in front of
 * a claim, which then reverts. So such a row goes alone, as far as the caller has room, and never
 * with those that have time. Vouchers that code of their payer accepts go alone, too: it may change
 * its mind.
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
  const byCode = rows.filter(({ config }) => config.payerAuthorizer === zeroAddress);
  const near = rows.filter((row, index) => {
    const reading = readings[index];
    if (reading?.withdrawal === undefined || byCode.includes(row)) return false;
    if (!takesOf(reading, row)) return false;
    const { withdrawal } = reading;
    const { withdrawDelay } = row.config;
    return withdrawal.initiatedAt + withdrawDelay - time < withdrawDelay / nearShare;
  });
  const most = Math.max(1, Math.floor(network.escrow.settlement.network.maxInFlight / 2));
  const alone = [...near.slice(0, most), ...byCode].map((row) => [row]);
  const others = near.slice(most);
  const timely = rows.filter((row) => !near.includes(row) && !byCode.includes(row));
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
