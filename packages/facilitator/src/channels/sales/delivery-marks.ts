import type { Clock } from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import type { ChannelKey } from "../../ledger/channels/channel.ts";
import { deliverCharges } from "../../ledger/channels/end-charge.ts";
import type { LedgerContext } from "../../ledger/ledger-context.ts";
import type { Logger } from "../../logger.ts";

/** Delivery marks that the ledger does not have yet. No answer waits for one. */
export interface DeliveryMarks {
  /** The answer of a charge has gone out. */
  add(key: ChannelKey, chargeId: string): void;
  /** Returns whether a charge was delivered here, and the ledger may not have its mark. */
  has(channelId: Hex, chargeId: string): boolean;
  /** The next charge says as much: its buyer has gone on. */
  drop(channelId: Hex): void;
  /** Writes what is there. */
  flush(): Promise<void>;
  /** Writes what is there, and takes no more. Never rejects: the rest is stopped in any case. */
  close(): Promise<void>;
}

/** Marks of one statement. */
const maxAtOnce = 250;

/**
 * Keeps marks in memory, and writes those of a short time in one statement. A mark that is lost
 * with its process is a free second delivery of one answer, and no second charge.
 *
 * The memory is bounded by the charges of one interval, and after faults by `maxMarks`.
 */
export function createDeliveryMarks(options: {
  ledger: LedgerContext;
  clock: Clock;
  logger: Logger;
  intervalMs?: number;
  maxMarks?: number;
}): DeliveryMarks {
  const { ledger, clock, logger, intervalMs = 500, maxMarks = 100_000 } = options;
  const marks = new Map<Hex, { key: ChannelKey; id: string }>();
  let cancel: (() => void) | undefined;
  let isClosed = false;

  function schedule(): void {
    if (isClosed || cancel !== undefined || marks.size === 0) return;
    cancel = clock.setTimer(() => {
      cancel = undefined;
      flush()
        .catch((err: unknown) => logger.warn({ err }, "delivery marks of channels wait"))
        .finally(schedule);
    }, intervalMs);
  }

  async function flush(): Promise<void> {
    const places = new Map<string, { key: ChannelKey; id: string }[]>();
    for (const mark of marks.values()) {
      const place = `${mark.key.network}/${mark.key.contract}`;
      const ofPlace = places.get(place);
      if (ofPlace === undefined) places.set(place, [mark]);
      else ofPlace.push(mark);
    }
    for (const ofPlace of places.values()) {
      for (let from = 0; from < ofPlace.length; from += maxAtOnce) {
        const some = ofPlace.slice(from, from + maxAtOnce);
        const [first] = some;
        if (first === undefined) continue;
        const charges = some.map(({ key: { channelId }, id }) => ({ channelId, id }));
        await deliverCharges(ledger, { ...first.key, charges });
        for (const mark of some) {
          if (marks.get(mark.key.channelId) === mark) marks.delete(mark.key.channelId);
        }
      }
    }
  }

  return {
    add(key, id) {
      marks.delete(key.channelId);
      marks.set(key.channelId, { key, id });
      const [oldest] = marks.keys();
      if (marks.size > maxMarks && oldest !== undefined) marks.delete(oldest);
      schedule();
    },
    has: (channelId, id) => marks.get(channelId)?.id === id,
    drop: (channelId) => void marks.delete(channelId),
    flush,
    async close() {
      isClosed = true;
      cancel?.();
      await flush().catch((err: unknown) => {
        logger.warn({ err }, "delivery marks of channels are lost at the close");
      });
    },
  };
}
