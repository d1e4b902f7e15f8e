import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { operateWebhooks, type TakenEvent } from "@coinslot/facilitator";
import {
  attemptDelivery,
  createPoster,
  createSigner,
  isEventSecret,
  type WebhookTarget,
  webhookBodyOf,
  webhookIdOf,
} from "@coinslot/webhooks";
import { Command, InvalidArgumentError } from "commander";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readOperatorPlace } from "../operator-place.ts";
import { paint, type Terminal } from "../terminal.ts";
import { drawSecret } from "./rotate-secret-command.ts";

interface ListenOptions {
  forward: URL;
  secret?: string;
  ledger?: string;
}

const pauseMs = 500;
const timeoutMs = 30_000;
/** Time for the answer to a POST that an interrupt has come upon. */
const graceMs = 2_000;

/** `coinslot listen`: forwards events to a program that is being developed, until Ctrl-C. */
export function listenCommand(terminal: Terminal, io: Io): Command {
  return new Command("listen")
    .requiredOption(
      "--forward <url>",
      "post each event here, such as http://localhost:3000/hook",
      readUrl,
    )
    .option(
      "--secret <secret>",
      "sign by this secret; default: a new one, which is printed",
      readSecret,
    )
    .addOption(ledgerOption())
    .addHelpText(
      "after",
      `
It gets the events that are written from now on, signed as those of a seller, each posted once.

Example:
  coinslot listen --forward http://localhost:3000/hook`,
    )
    .action(async ({ forward, secret = drawSecret(), ledger }: ListenOptions): Promise<void> => {
      const webhooks = operateWebhooks(readOperatorPlace(terminal, io, ledger));
      const listener = randomUUID();
      const target: WebhookTarget = {
        url: forward,
        sign: createSigner([secret]),
        post: createPoster({ timeoutMs, lookup: undefined, signal: laterThan(terminal.signal) }),
      };
      await webhooks.take(listener);
      terminal.err(`Forwarding events to ${forward.href}, signed by ${secret}. Ctrl-C stops it.`);
      try {
        while (!terminal.signal.aborted) {
          const events = await webhooks.take(listener);
          for (const event of events) await forwardTo(terminal, target, event, io);
          // Of each payment one event comes at a time: the next one may be there already.
          if (events.length === 0) await pause(terminal.signal);
        }
      } finally {
        await webhooks.leave(listener);
      }
      terminal.err("Stopped.");
    });
}

async function forwardTo(
  terminal: Terminal,
  target: WebhookTarget,
  event: TakenEvent,
  io: Io,
): Promise<void> {
  if (terminal.signal.aborted) return;
  const id = webhookIdOf(event);
  const body = webhookBodyOf(event);
  const result = await attemptDelivery(target, { id, body, nowMs: io.now() });
  const words =
    result.outcome === "delivered"
      ? paint(terminal, "green", "delivered")
      : paint(terminal, "red", result.error);
  terminal.out(`${event.type} ${event.key} ${id}: ${words}`);
}

/** Aborts some time after the other one. */
function laterThan(signal: AbortSignal): AbortSignal {
  const late = new AbortController();
  const abortLater = () => setTimeout(() => late.abort(), graceMs).unref();
  signal.addEventListener("abort", abortLater, { once: true });
  return late.signal;
}

async function pause(signal: AbortSignal): Promise<void> {
  await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
}

function readUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && ["http:", "https:"].includes(url.protocol)) return url;
  throw new InvalidArgumentError("expected a URL such as http://localhost:3000/hook");
}

function readSecret(text: string): string {
  if (isEventSecret(text)) return text;
  throw new InvalidArgumentError("expected whsec_ and 24 to 64 random bytes in base64");
}
