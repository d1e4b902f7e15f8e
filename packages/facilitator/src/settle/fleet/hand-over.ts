import { createSingleFlight } from "@coinslot/concurrency";
import type { Network } from "@coinslot/protocol";
import { channelOf } from "../../ledger/process-id.ts";
import type { SettlementContext } from "../context.ts";
import {
  encodeHandOver,
  type HandedOver,
  maxHandedOver,
  parseHandOver,
  type ReceivedPayments,
} from "./hand-over-message.ts";
import type { RelayerSharing } from "./share-relayers.ts";

/**
 * Channel of processes of the previous release, which read the whole queue for each message. Its
 * payload is the network.
 */
export const queueChannel = "coinslot_queue";

/** Gives queued payments to a process that can settle them. */
export interface HandOver {
  /** Hands payments over. Returns false, and does nothing, where no other process has a relayer. */
  offer(payments: readonly HandedOver[]): boolean;
  /** Resolves when all messages are sent. */
  idle(): Promise<void>;
}

/**
 * Creates the sender. A message that is lost, or reaches a process that dies, loses no payment. The
 * ledger has it, and sweeps find it. Payments that are offered while a message is sent share the
 * next one.
 */
export function createHandOver(options: {
  context: Pick<SettlementContext, "ledger" | "logger" | "clock">;
  network: Network;
  sharing: Pick<RelayerSharing, "others">;
}): HandOver {
  const { context, network, sharing } = options;
  const { ledger, logger, clock } = context;
  const waiting: HandedOver[] = [];
  let turn = 0;
  const sending = createSingleFlight(async () => {
    while (waiting.length > 0) {
      const payments = waiting.splice(0, maxHandedOver);
      const { settlers } = sharing.others();
      const settler = settlers[turn++ % settlers.length];
      const channel = settler && channelOf(queueChannel, settler);
      try {
        if (channel) await ledger.notify(channel, encodeHandOver(network, payments, clock.now()));
        else await ledger.notify(queueChannel, network);
      } catch (err) {
        logger.warn({ err, network }, "payments could not be handed over; a sweep finds them");
      }
    }
  });
  return {
    offer(payments) {
      const { settlers, hasOlder } = sharing.others();
      if (settlers.length === 0 && !hasOlder) return false;
      waiting.push(...payments);
      if (waiting.length > 0) sending.trigger();
      return true;
    },
    idle: sending.idle,
  };
}

/** Listens to the channel of this process for payments of a network. */
export async function listenToHandOvers(
  { ledger, clock }: Pick<SettlementContext, "ledger" | "clock">,
  network: Network,
  onPayments: (received: ReceivedPayments) => void,
): Promise<() => Promise<void>> {
  const channel = channelOf(queueChannel, ledger.processId);
  // In tests a process may have a name of the previous release.
  if (channel === undefined) return async () => undefined;
  return ledger.listen(channel, (payload) => {
    // No payload: the connection was lost for a while. Sweeps find what was missed.
    if (payload === undefined) return;
    const received = parseHandOver(payload, clock.now());
    if (received.network === network && received.ids.length > 0) onPayments(received);
  });
}
