import {
  createHostResolver,
  createPoster,
  createPublicLookup,
  createSigner,
  readCallbackUrl,
} from "@coinslot/webhooks";
import type { EventOptions, EventOutcome } from "./event-options.ts";
import { createLetterQueue } from "./letter-queue.ts";
import { createLifecycleEvent, type EventContent } from "./lifecycle-event.ts";

/** Queues an event for one receiver, in order, and returns at once. Never throws. */
export type Tell = (content: EventContent) => void;

/** Sends events to the receivers that requests name: fire and forget. */
export interface EventSender {
  /**
   * Opens a channel to the URL of a request's `X-Event-Callback`; `undefined` without a usable URL.
   *
   * @param sender the request's client: a receiver's host is its to invent, and limits nothing
   */
  open(callback: string | undefined, sender: string): Tell | undefined;
}

interface Letter {
  /** The client whose request it is about. */
  sender: string;
  url: URL;
  /** Events of one channel are delivered one after the other. */
  channel: object;
  id: string;
  body: string;
}

/**
 * Creates a sender. Payments never wait for it: `open` and `Tell` only append to a bounded queue.
 * Receivers get the events of one request in order. There is no retry. A receiver that does not
 * answer loses the events that its client has queued. Clients take turns, and one has half of the
 * deliveries under way. Where the queue is full, the client with the most loses its oldest.
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
  const maxInFlightPerSender = Math.max(1, Math.floor(maxInFlight / 2));
  // Each channel has one delivery under way at most.
  const busyChannels = new Set<object>();
  const toHosts = createTally();
  const ofSenders = createTally();
  const waiting = createLetterQueue<Letter>();
  signal?.addEventListener("abort", () => drop(waiting.remove(() => true)), { once: true });

  function enqueue(letter: Letter): void {
    if (signal?.aborted) {
      report("dropped");
      return;
    }
    waiting.add(letter);
    sendNext();
    drop(waiting.trim(maxWaiting));
  }

  function sendNext(): void {
    while (busyChannels.size < maxInFlight) {
      const letter = waiting.take(mayGo);
      if (letter === undefined) return;
      void send(letter);
    }
  }

  function mayGo({ sender, url, channel }: Letter): boolean {
    if (ofSenders.count(sender) >= maxInFlightPerSender) return false;
    return !busyChannels.has(channel) && toHosts.count(url.host) < maxInFlightPerHost;
  }

  async function send(letter: Letter): Promise<void> {
    const { sender, channel } = letter;
    const { host } = letter.url;
    busyChannels.add(channel);
    toHosts.add(host);
    ofSenders.add(sender);
    const outcome = await deliver(letter);
    busyChannels.delete(channel);
    toHosts.remove(host);
    ofSenders.remove(sender);
    report(outcome);
    if (outcome === "failed") {
      // The path may be what fails: then the host's other clients lose nothing.
      drop(waiting.remove((other) => other.sender === sender && other.url.host === host));
    }
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

  function drop(letters: readonly Letter[]): void {
    for (const _ of letters) report("dropped");
  }

  function report(outcome: EventOutcome): void {
    try {
      onOutcome(outcome);
    } catch {
      // A fault of the counter must not fail the payment that the event is about.
    }
  }

  return {
    open(callback, sender) {
      const url = readCallbackUrl(callback, { allowPrivate });
      if (url === undefined) return undefined;
      const channel = {};
      return function tell(content) {
        const event = createLifecycleEvent(content, now());
        enqueue({ sender, url, channel, id: event.id, body: JSON.stringify(event) });
      };
    },
  };
}

/** Counts by name, and forgets names without a count. */
function createTally() {
  const counts = new Map<string, number>();
  const count = (name: string) => counts.get(name) ?? 0;
  return {
    count,
    add(name: string): void {
      counts.set(name, count(name) + 1);
    },
    remove(name: string): void {
      if (count(name) > 1) counts.set(name, count(name) - 1);
      else counts.delete(name);
    },
  };
}
