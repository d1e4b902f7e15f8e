import { randomUUID } from "node:crypto";
import type { Network } from "@coinslot/protocol";

/** Which payment it is about: what is known of it, and nothing that could be used to take it. */
export interface EventSubject {
  network: Network;
  asset?: string;
  payer?: string;
  nonce?: string;
}

/** What happened, by type, as the payment-over-HTTP flow names it. */
export type EventContent =
  | { type: "verify_started"; details: EventSubject & { checks: readonly string[] } }
  /** Also of an invalid payment. */
  | {
      type: "verify_completed";
      details: EventSubject & { isValid: boolean; invalidReason?: string };
    }
  /** The checking itself failed; of the payment it says nothing. */
  | { type: "verify_failed"; details: EventSubject & { error: string } }
  /** Its transaction is being broadcast. */
  | { type: "settle_started"; details: EventSubject }
  /** Its transfer stands in a block. */
  | { type: "settle_completed"; details: EventSubject & { transactionHash: string } }
  | { type: "settle_failed"; details: EventSubject & { error: string } };

/** An event as it is posted. */
export type LifecycleEvent = EventContent & {
  /** Unique for each event: who gets one twice knows it by this. */
  id: string;
  /** When it happened, ISO 8601. */
  timestamp: string;
};

/** Puts a content into its envelope. */
export function createLifecycleEvent(content: EventContent, nowMs: number): LifecycleEvent {
  return { id: `evt_${randomUUID()}`, timestamp: new Date(nowMs).toISOString(), ...content };
}
