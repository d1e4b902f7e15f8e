import type { ResolveHost } from "@coinslot/webhooks";

/**
 * Outcome of an event: `delivered` (answered with 2xx), `refused` (with another status), `failed`
 * (no answer in time), or `dropped`. A dropped one was not sent: the queue was full, and its client
 * had the most in it. Or the receiver has just failed.
 */
export type EventOutcome = "delivered" | "refused" | "failed" | "dropped";

/** Delivery of lifecycle events to the URLs that sellers name in `X-Event-Callback`. */
export interface EventOptions {
  /**
   * Signs events by the Standard Webhooks scheme: `whsec_…`, or several secrets during a rotation.
   */
  secret?: string | readonly string[] | undefined;
  /** Deadline of one delivery, its answer included. Default 5,000. */
  timeoutMs?: number | undefined;
  /** Concurrent deliveries: one host has a quarter at most, one client half. Default 64. */
  maxInFlight?: number | undefined;
  /** Events in the queue. Beyond it, the client with the most loses its oldest. Default 1,000. */
  maxWaiting?: number | undefined;
  /**
   * For development: lets events go to every address, and over plain http. Any caller of this
   * facilitator can then make it call the machines of its own network.
   */
  unsafeAllowPrivateAddresses?: boolean | undefined;
  /** Receives the outcome of every event. */
  onOutcome?: ((outcome: EventOutcome) => void) | undefined;
  /** Once aborted, nothing new is sent, and the queue is dropped. */
  signal?: AbortSignal | undefined;
  /** Finds the addresses of a host name. Default: DNS. */
  resolveHost?: ResolveHost | undefined;
  /** Unix milliseconds. Default `Date.now`. */
  now?: (() => number) | undefined;
}
