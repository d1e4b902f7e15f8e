import { setTimeout as sleep } from "node:timers/promises";
import { listen } from "@coinslot/devnet";
import { operateWebhooks } from "@coinslot/facilitator";
import { Webhook } from "standardwebhooks";
import * as z from "zod";
import type { Random } from "./seeded-random.ts";

/** An event that the receiver has taken in, also where the sender could not know. */
export interface TakenEvent {
  id: string;
  type: string;
  payment: string;
  /** Of an event of a refund. */
  refund: string | undefined;
}

/** A receiver of webhooks, which fails now and then. */
export interface WebhookLog {
  url: string;
  secret: string;
  /** In the order of their arrival, repetitions among them. */
  taken(): readonly TakenEvent[];
  /** Requests whose signature was wrong, or whose body was none. */
  foreign(): number;
  setFaulty(isFaulty: boolean): void;
  close(): Promise<void>;
}

const eventSchema = z.object({
  id: z.string(),
  type: z.string(),
  data: z.looseObject({ payment: z.string(), refund: z.string().optional() }),
});

/** Longer than the claim of a dead process, and than the second pause of a failed delivery. */
const drainedWithinMs = 120_000;
const lookMs = 200;

/** Starts a receiver. Of its answers some are 500, and some break off after it has read all. */
export async function openWebhookLog(random: Random): Promise<WebhookLog> {
  const secret = `whsec_${Buffer.alloc(32, 9).toString("base64")}`;
  const verifier = new Webhook(secret);
  const taken: TakenEvent[] = [];
  let foreign = 0;
  let isFaulty = false;
  const server = await listen((request, response) => {
    const chunks: Buffer[] = [];
    request.on("error", () => undefined);
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const event = verify(Buffer.concat(chunks).toString(), request.headers);
      if (event === undefined) {
        foreign += 1;
        response.writeHead(400).end();
        return;
      }
      if (isFaulty && random.chance(0.02)) {
        response.writeHead(500).end();
        return;
      }
      const { id, type, data } = event;
      taken.push({ id, type, payment: data.payment, refund: data.refund });
      if (isFaulty && random.chance(0.02)) response.destroy();
      else response.writeHead(204).end();
    });
  });

  function verify(body: string, headers: NodeJS.Dict<string | string[]>) {
    const texts = Object.entries(headers).map(([name, value]) => [name, String(value)] as const);
    try {
      return eventSchema.parse(verifier.verify(body, Object.fromEntries(texts)));
    } catch {
      return undefined;
    }
  }

  return {
    url: `${server.url}/events`,
    secret,
    taken: () => taken,
    foreign: () => foreign,
    setFaulty(next) {
      isFaulty = next;
    },
    close: server.close,
  };
}

/**
 * Waits until no event is left to be delivered. @returns the number of those that are, at the
 * timeout
 */
export async function awaitDeliveries(ledger: string): Promise<number> {
  const deadline = performance.now() + drainedWithinMs;
  for (;;) {
    const endpoints = await operateWebhooks(ledger).list();
    const pending = endpoints.reduce((sum, each) => sum + each.pending + each.dead, 0);
    if (pending === 0 || performance.now() > deadline) return pending;
    await sleep(lookMs);
  }
}
