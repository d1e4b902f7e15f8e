import { forProcess, type LedgerContext } from "../ledger-context.ts";
import { isSilenceDeath, selectAlive } from "../maintenance/living-processes.ts";
import type { ChannelKey } from "./channel.ts";

/**
 * Reserves the channel for one run of a handler: for unsafe methods, which must not run twice for
 * one voucher. A charge or `releaseRun` ends it. It ends with its process, too: the next
 * reservation takes the token of a dead owner away.
 *
 * The racer is another request on the same `charged`, here or in another process: one update finds
 * no living token.
 *
 * @returns false where another request runs, or the channel has changed: read it again
 */
export function reserveRun(
  ledger: LedgerContext,
  { network, contract, channelId, seen, token }: ChannelKey & { seen: bigint; token: string },
): Promise<boolean> {
  return ledger.write(async (transaction) => {
    const isDeath = await isSilenceDeath(ledger, transaction);
    const living = isDeath
      ? selectAlive(ledger, transaction)
      : transaction.selectFrom("processes").select("id");
    const { numUpdatedRows } = await transaction
      .updateTable("channels")
      .set({ running_token: token, running_owner: ledger.processId })
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("channel_id", "=", channelId)
      .where("charged", "=", ledger.dialect.amount.encode(seen))
      .where("refunding", "=", 0)
      .where(({ or, eb }) =>
        or([eb("running_token", "is", null), eb("running_owner", "not in", living)]),
      )
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }, forProcess);
}

/**
 * Ends a reserved run that charges nothing. No effect once another request has taken the channel.
 */
export async function releaseRun(
  ledger: LedgerContext,
  { network, contract, channelId, token }: ChannelKey & { token: string },
): Promise<void> {
  await ledger.write(
    (transaction) =>
      transaction
        .updateTable("channels")
        .set({ running_token: null, running_owner: null })
        .where("network", "=", network)
        .where("contract", "=", contract)
        .where("channel_id", "=", channelId)
        .where("running_token", "=", token)
        .execute(),
    forProcess,
  );
}
