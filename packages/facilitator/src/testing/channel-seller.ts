import { systemClock } from "@coinslot/chain";
import type { Address, ChannelConfig, Hex, Network } from "@coinslot/protocol";
import { sql } from "kysely";
import { Registry } from "prom-client";
import { type ChannelSalesOptions, createChannelSales } from "../channels/sales/channel-sales.ts";
import type { ChannelObservation } from "../channels/watch/observed-channel.ts";
import { createSignerRecovery } from "../evm/recover-signer.ts";
import { openChannel, readChannel } from "../ledger/channels/open-channel.ts";
import { createLedger } from "../ledger/create-ledger.ts";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { sendHeartbeat } from "../ledger/maintenance/processes.ts";
import { openLedger } from "../ledger/open-ledger.ts";
import { silentLogger } from "../logger.ts";
import { createChannelMetrics } from "../settle/channel-metrics.ts";
import { createStopBoard } from "../stops/stop-board.ts";

/** A channel of the chain, for an observer without a watcher. */
export interface LookedAtChannel {
  balance: bigint;
  totalClaimed: bigint;
  /** Unix seconds; 0 without a pending withdrawal. */
  withdrawRequestedAt: number;
  refundNonce: bigint;
  /** The part of the balance that no payer can take back before a claim. */
  secure: bigint;
}

export interface ChannelSellerOptions {
  /** Of the ledger. */
  url: string;
  network: Network;
  contract: Address;
  receiverAuthorizer: Address;
  /** Reads the chain. It takes the watcher's place. */
  look: (channelId: Hex) => Promise<LookedAtChannel | undefined>;
  processId?: string;
  /** False near the end of a withdrawal's delay. */
  isSelling?: boolean;
  options?: Partial<ChannelSalesOptions>;
}

/** Sales by channels on a ledger of their own, and an observer that reads the chain each time. */
export async function openChannelSeller(given: ChannelSellerOptions) {
  const { url, network, contract, receiverAuthorizer, look, processId = "seller" } = given;
  const opened = await openLedger({ url, processId });
  const ledger: LedgerContext = createLedger({
    database: opened.database,
    processId,
    now: Date.now,
    heartbeatLeaseMs: 30_000,
    keepAnswersMs: 60_000,
    releaseLimit: { count: 20, windowMs: 60_000 },
  });
  await sendHeartbeat(ledger);
  ledger.heartbeat.unsureSince = Number.NEGATIVE_INFINITY;
  const stops = createStopBoard();

  /** As the watcher does: the row's secure balance follows the chain. */
  async function follow(channelId: Hex): Promise<void> {
    const found = await look(channelId);
    const secure = ledger.dialect.amount.encode(found?.secure ?? 0n);
    await sql`update channels set secure = ${secure} where channel_id = ${channelId}`.execute(
      opened.database.kysely,
    );
  }

  async function observe(channelId: Hex, config: ChannelConfig): Promise<ChannelObservation> {
    const found = await look(channelId);
    if (found === undefined) return { kind: "stale", retryAfterSeconds: 5 };
    const { secure: _, withdrawRequestedAt, ...state } = found;
    const key = { network, contract, channelId };
    let channel = await readChannel(ledger, key);
    if (channel === undefined) {
      if (found.balance === 0n) return { kind: "absent" };
      await openChannel(ledger, { ...key, config, totalClaimed: found.totalClaimed });
      await follow(channelId);
      channel = await readChannel(ledger, key);
    }
    if (channel === undefined) throw new Error("A channel that was just written is not there.");
    const withdrawal = withdrawRequestedAt === 0 ? undefined : { initiatedAt: withdrawRequestedAt };
    const isSelling = given.isSelling ?? true;
    const maxUnclaimed = 10n ** 12n;
    return { kind: "observed", channel, state: { withdrawal, ...state }, isSelling, maxUnclaimed };
  }

  const sales = createChannelSales({
    ledger,
    networks: [
      {
        network,
        contract,
        receiverAuthorizer,
        observer: { observe },
      },
    ],
    recoverSigner: createSignerRecovery().recoverSigner,
    stops,
    metrics: createChannelMetrics(new Registry()),
    clock: systemClock,
    logger: silentLogger,
    ...given.options,
  });
  return {
    sales,
    ledger,
    stops,
    follow,
    /** Changes rows as another part of the house would. */
    execute: (statement: string) => sql.raw(statement).execute(opened.database.kysely),
    /** `charged` of a channel's row. */
    async chargedOf(channelId: Hex) {
      return (await readChannel(ledger, { network, contract, channelId }))?.charged;
    },
    async close() {
      await sales.close();
      await opened.close();
    },
  };
}
