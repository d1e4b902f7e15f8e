import { setTimeout as sleep } from "node:timers/promises";
import type { Hex } from "@coinslot/protocol";
import { openLedger } from "../../../packages/facilitator/src/ledger/open-ledger.ts";

/** A channel as the ledger has it. Amounts are in the token's smallest unit. */
export interface LedgerChannel {
  channelId: Hex;
  charged: bigint;
  ceiling: bigint;
  lost: bigint;
}

/** The ledger's channels, and the work that is left for its watcher and planner. */
export interface LedgerOfChannels {
  channels: readonly LedgerChannel[];
  /** Channels with unclaimed money, or whose last blocks are not final; claims on their way. */
  dues: number;
  moving: number;
  sentClaims: number;
}

const lookMs = 500;

/** Reads the channels of a ledger beside the processes that write it. */
async function readLedger(url: string): Promise<LedgerOfChannels> {
  const opened = await openLedger({ url, processId: "fault kit", readOnly: true });
  try {
    const { kysely, dialect } = opened.database;
    const rows = await kysely.selectFrom("channels").selectAll().execute();
    const [dues, moving, sent] = await Promise.all([
      kysely.selectFrom("channel_dues").select("channel_id").execute(),
      kysely.selectFrom("channel_states").select("channel_id").where("is_moving", "=", 1).execute(),
      kysely
        .selectFrom("channel_claims")
        .select("channel_id")
        .where("state", "=", "sent")
        .execute(),
    ]);
    const { decode } = dialect.amount;
    return {
      channels: rows.map((row) => ({
        channelId: row.channel_id,
        charged: decode(row.charged),
        ceiling: row.ceiling === null ? 0n : decode(row.ceiling),
        lost: decode(row.lost),
      })),
      dues: dues.length,
      moving: moving.length,
      sentClaims: sent.length,
    };
  } finally {
    await opened.close();
  }
}

/** The ledger once all is claimed, and final; or at the timeout. */
export async function awaitClaimed(url: string, timeoutMs: number): Promise<LedgerOfChannels> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const ledger = await readLedger(url);
    const isAtRest = ledger.dues + ledger.moving + ledger.sentClaims === 0;
    if (isAtRest || performance.now() > deadline) return ledger;
    await sleep(lookMs);
  }
}
