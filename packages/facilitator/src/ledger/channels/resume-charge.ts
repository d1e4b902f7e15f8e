import { maxHandlerRuns } from "@coinslot/protocol";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import { isSilenceDeath, selectAlive } from "../maintenance/living-processes.ts";
import type { ChannelKey } from "./channel.ts";

type ChargeName = ChannelKey & { id: string };

/**
 * Takes the last charge of a channel over, to hand its answer over again. Its process has given the
 * answer up, or has died, or is this one.
 *
 * The racers:
 * - the same request at another process: one update finds no living owner;
 * - the process that charged, frozen until now: its delivery mark asks for the owner;
 * - the next charge: `last_id` differs by then.
 *
 * @returns false where a living process has it, it was delivered, or the channel has gone on
 */
export function takeCharge(
  ledger: LedgerContext,
  { network, contract, channelId, id }: ChargeName,
): Promise<boolean> {
  return ledger.write(async (transaction) => {
    const isDeath = await isSilenceDeath(ledger, transaction);
    const living = isDeath
      ? selectAlive(ledger, transaction)
      : transaction.selectFrom("processes").select("id");
    const { numUpdatedRows } = await transaction
      .updateTable("channels")
      .set({ last_owner: ledger.processId })
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("channel_id", "=", channelId)
      .where("last_id", "=", id)
      .where("last_delivered_at", "is", null)
      .where(({ or, eb }) =>
        or([
          eb("last_owner", "is", null),
          eb("last_owner", "=", ledger.processId),
          eb("last_owner", "not in", living),
        ]),
      )
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }, forProcess);
}

/**
 * Counts one more run of a charge's handler, for its owner.
 *
 * @returns false where it has run as often as it may, or has another owner by now
 */
export function countRun(
  ledger: LedgerContext,
  { network, contract, channelId, id }: ChargeName,
): Promise<boolean> {
  return ledger.write(async (transaction) => {
    const { numUpdatedRows } = await transaction
      .updateTable("channels")
      .set(({ eb }) => ({ last_runs: eb("last_runs", "+", 1) }))
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("channel_id", "=", channelId)
      .where("last_id", "=", id)
      .where("last_owner", "=", ledger.processId)
      .where("last_runs", "<", maxHandlerRuns)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }, forProcess);
}

/**
 * Gives a charge's answer up: it has not arrived, and the same request may have it at any process.
 */
export async function giveUpCharge(
  ledger: LedgerContext,
  { network, contract, channelId, id }: ChargeName,
): Promise<void> {
  await ledger.write(
    (transaction) =>
      transaction
        .updateTable("channels")
        .set({ last_owner: null })
        .where("network", "=", network)
        .where("contract", "=", contract)
        .where("channel_id", "=", channelId)
        .where("last_id", "=", id)
        .where("last_owner", "=", ledger.processId)
        .execute(),
    forProcess,
  );
}
