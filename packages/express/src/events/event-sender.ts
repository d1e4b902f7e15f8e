import {
  createHostResolver,
  createPoster,
  createPublicLookup,
  createSigner,
  readCallbackUrl,
} from "@coinslot/webhooks";
import type { EventOptions, EventOutcome } from "./event-options.ts";
import { createLifecycleEvent, type EventContent } from "./lifecycle-event.ts";

/** Queues an event for one receiver, in order, and returns at once. Never throws. */
export type Tell = (content: EventContent) => void;

/** Sends events to the receivers that requests name: fire and forget. */
export interface EventSender {
  /**
   * Opens a channel to the URL of a request's `X-Event-Callback`; `undefined` without a usable URL.
   */
  open(callback: string | undefined): Tell | undefined;
}

interface Letter {
  url: URL;
  /** Events of one channel are delivered one after the other. */
  channel: object;
  id: string;
  body: string;
}

/**
 * Creates a sender. Payments never wait for it: `open` and `Tell` only append to a bounded queue.
 * Receivers get the events of one request in order. There is no retry. A receiver that does not
 * answer loses its queued events, so it delays others only by its deliveries under way.
 *
 * @throws ConfigurationError if a secret is not one
 */
export function createEventSender(options: EventOptions): EventSender {
  const { secret = [], timeoutMs = 5_000, maxInFlight = 64, maxWaiting = 1_000 } = options;
  const { unsafeAllowPrivateAddresses: allowPrivate = false, now = Date.now } = options;
  const { onOutcome = () => undefined, signal } = options;
  const { resolveHost = createHostResolver({ timeoutMs }) } = options;
  const sign = createSigner(typeof secret === "string" ? [secret] : secret, "The lifecycle events");
  const lookup = allowPrivate ? undefined : createPublicLookup(resolveHost);
  const post = createPoster({ timeoutMs, lookup });
  const maxInFlightPerHost = Math.max(1, Math.floor(maxInFlight / 4));
  const busyChannels = new Set<object>();
  const inFlightByHost = new Map<string, number>();
  let waiting: Letter[] = [];
  signal?.addEventListener("abort", () => drop(() => true), { once: true });

  function enqueue(letter: Letter): void {
    if (signal?.aborted || waiting.length >= maxWaiting) {
      report("dropped");
    } else {
      waiting.push(letter);
      sendNext();
    }
  }

  function sendNext(): void {
    // Each channel has one delivery under way at most.
    if (busyChannels.size >= maxInFlight) return;
    const next = waiting.findIndex(mayGo);
    const [letter] = next < 0 ? [] : waiting.splice(next, 1);
    if (letter !== undefined) void send(letter);
  }

  function mayGo({ url, channel }: Letter): boolean {
    return !busyChannels.has(channel) && inFlightTo(url.host) < maxInFlightPerHost;
  }

  function inFlightTo(host: string): number {
    return inFlightByHost.get(host) ?? 0;
  }

  async function send(letter: Letter): Promise<void> {
    const { host } = letter.url;
    busyChannels.add(letter.channel);
    inFlightByHost.set(host, inFlightTo(host) + 1);
    const outcome = await deliver(letter);
    busyChannels.delete(letter.channel);
    if (inFlightTo(host) > 1) inFlightByHost.set(host, inFlightTo(host) - 1);
    else inFlightByHost.delete(host);
    report(outcome);
    if (outcome === "failed") drop(({ url }) => url.host === host);
    sendNext();
  }

  async function deliver({ url, id, body }: Letter): Promise<EventOutcome> {
    const headers = { "Content-Type": "application/json", ...sign({ id, body, nowMs: now() }) };
    try {
      const status = await post({ url, headers, body });
      return status >= 200 && status < 300 ? "delivered" : "refused";
    } catch {
      return "failed";
    }
  }

  function drop(matches: (letter: Letter) => boolean): void {
    const dropped = waiting.filter(matches);
    waiting = waiting.filter((letter) => !matches(letter));
    for (const _ of dropped) report("dropped");
  }

  function report(outcome: EventOutcome): void {
    try {
      onOutcome(outcome);
    } catch {
      // A fault of the counter must not fail the payment that the event is about.
    }
  }

  return {
    open(callback) {
      const url = readCallbackUrl(callback, { allowPrivate });
      if (url === undefined) return undefined;
      const channel = {};
      return function tell(content) {
        const event = createLifecycleEvent(content, now());
        enqueue({ url, channel, id: event.id, body: JSON.stringify(event) });
      };
    },
  };
}
