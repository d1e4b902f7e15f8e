import { randomUUID } from "node:crypto";
import type { Network } from "@coinslot/protocol";

/**
 * The payment, or the call about a channel, of an event: its known facts, and nothing that could be
 * used to take it.
 */
export interface EventSubject {
  network: Network;
  asset?: string;
  payer?: string;
  nonce?: string;
  /** Type of the payload about a channel: `voucher`, `deposit`, `claim`, `settle`, `refund`. */
  payload?: string;
  /** Id of the channel, where there is one. */
  channel?: string;
}

/** An event's type and details, in the names of the payment-over-HTTP flow. */
export type EventContent =
  | { type: "verify_started"; details: EventSubject & { checks: readonly string[] } }
  /** Sent for an invalid payment, too. */
  | {
      type: "verify_completed";
      details: EventSubject & { isValid: boolean; invalidReason?: string };
    }
  /** The check itself failed; it says nothing of the payment. */
  | { type: "verify_failed"; details: EventSubject & { error: string } }
  /** Its transaction is being broadcast. */
  | { type: "settle_started"; details: EventSubject }
  /** Its transfer is in a block. Without a hash where the chain had all of it already. */
  | { type: "settle_completed"; details: EventSubject & { transactionHash?: string } }
  | { type: "settle_failed"; details: EventSubject & { error: string } };

/** An event as it is posted. */
export type LifecycleEvent = EventContent & {
  /** Unique for each event, so that a receiver can drop duplicates. */
  id: string;
  /** Time of the event, ISO 8601. */
  timestamp: string;
};

/** Wraps a content in its envelope. */
export function createLifecycleEvent(content: EventContent, nowMs: number): LifecycleEvent {
  return { id: `evt_${randomUUID()}`, timestamp: new Date(nowMs).toISOString(), ...content };
}
