import type { ResolveHost } from "./public-lookup.ts";

/**
 * What became of an event: `delivered` (answered with 2xx), `refused` (with another status), `failed` (no answer in
 * time), `dropped` (not sent: too much was waiting, or the receiver has just failed).
 */
export type EventOutcome = "delivered" | "refused" | "failed" | "dropped";

/** How lifecycle events are sent to the URLs that sellers name in `X-Event-Callback`. */
export interface EventOptions {
  /** Signs events by the Standard Webhooks scheme: `whsec_…`, or several while one takes the place of another. */
  secret?: string | readonly string[] | undefined;
  /** For one delivery, the answer included. Default 5,000. */
  timeoutMs?: number | undefined;
  /** Deliveries at the same time, of which one host has a quarter at most. Default 64. */
  maxInFlight?: number | undefined;
  /** Events that wait for a delivery; more are dropped. Default 1,000. */
  maxWaiting?: number | undefined;
  /**
   * For development: lets events go to every address, and over plain http. Whoever may ask this facilitator can then
   * make it call the machines of its own network.
   */
  unsafeAllowPrivateAddresses?: boolean | undefined;
  /** Told of every event. */
  onOutcome?: ((outcome: EventOutcome) => void) | undefined;
  /** Once aborted, nothing new is sent, and what waits is dropped. */
  signal?: AbortSignal | undefined;
  /** Finds the addresses of a host name. Default: DNS. */
  resolveHost?: ResolveHost | undefined;
  /** Unix milliseconds. Default `Date.now`. */
  now?: (() => number) | undefined;
}
