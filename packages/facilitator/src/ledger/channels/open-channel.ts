import type { ChannelConfig } from "@coinslot/protocol";
import { compileOnce } from "../compile-once.ts";
import { forProcess, type LedgerContext, type LedgerReads } from "../ledger-context.ts";
import {
  type Channel,
  type ChannelKey,
  channelColumns,
  keyColumns,
  toChannel,
  toChannelConfig,
} from "./channel.ts";

/** A channel that the ledger may not know yet. */
export interface NewChannel extends ChannelKey {
  config: ChannelConfig;
  /** `totalClaimed` of the chain: charging begins there, never at a number of the buyer's. */
  totalClaimed: bigint;
}

/**
 * Writes a channel's rows, unless it has them, and returns the row.
 *
 * The racers are two first vouchers of a channel: the second one writes nothing, and both read the
 * row of the first. It need not be on the disk: its first charge brings it along.
 */
export async function openChannel(ledger: LedgerContext, channel: NewChannel): Promise<Channel> {
  const { dialect } = ledger;
  const key = keyColumns(channel);
  const { config } = channel;
  const none = dialect.amount.encode(0n);
  return ledger.write(async (transaction) => {
    await transaction
      .insertInto("channels")
      .values({
        ...key,
        charged: dialect.amount.encode(channel.totalClaimed),
        ceiling: null,
        signature: null,
        before_ceiling: null,
        before_signature: null,
        secure: none,
        lost: none,
        refunding: 0,
        running_token: null,
        running_owner: null,
        last_id: null,
        last_fingerprint: null,
        last_key_hash: null,
        last_amount: null,
        last_at: null,
        last_delivered_at: null,
      })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    await transaction
      .insertInto("channel_terms")
      .values({
        ...key,
        payer: config.payer,
        payer_authorizer: config.payerAuthorizer,
        receiver: config.receiver,
        receiver_authorizer: config.receiverAuthorizer,
        token: config.token,
        withdraw_delay: config.withdrawDelay,
        salt: config.salt,
        created_at: ledger.now(),
      })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    const opened = await readChannel({ db: transaction, dialect }, channel);
    if (opened === undefined) throw new Error("A channel that was just written is not there.");
    return opened;
  }, forProcess);
}

const select = compileOnce(
  (db, { network, contract, channelId }: ChannelKey) =>
    db
      .selectFrom("channels")
      .select(channelColumns)
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("channel_id", "=", channelId),
  ({ network, contract, channelId }) => [network, contract, channelId],
);

/** The channel's row; `undefined` where the ledger does not know it. */
export async function readChannel(
  reads: LedgerReads,
  key: ChannelKey,
): Promise<Channel | undefined> {
  const [row] = await select(reads, key);
  return row && toChannel(row, reads.dialect);
}

/** The channel's terms; `undefined` where the ledger does not know it. */
export async function readChannelConfig(
  { db }: LedgerReads,
  key: ChannelKey,
): Promise<ChannelConfig | undefined> {
  const row = await db
    .selectFrom("channel_terms")
    .selectAll()
    .where("network", "=", key.network)
    .where("contract", "=", key.contract)
    .where("channel_id", "=", key.channelId)
    .executeTakeFirst();
  return row && toChannelConfig(row);
}
