import type { ServerResponse } from "node:http";
import { type Listening, listen } from "@coinslot/devnet";
import { Webhook } from "standardwebhooks";
import * as z from "zod";

/** Secret of the receivers of tests. */
export const webhookSecret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

const eventSchema = z.object({
  id: z.string(),
  type: z.string(),
  timestamp: z.string(),
  data: z.looseObject({
    transactionHash: z.string(),
    transferIndex: z.number(),
    blockHash: z.string(),
    blockNumber: z.number(),
    to: z.string(),
    amount: z.string(),
  }),
});

export type ReceivedTransfer = z.infer<typeof eventSchema>;

/** A server that verifies webhooks, and keeps them in the order of their arrival. */
export interface TransferReceiver extends Listening {
  received: ReceivedTransfer[];
  /** Each event once, in the order of its first arrival. */
  firstOnes(): ReceivedTransfer[];
}

/** Starts a receiver, which answers 204 by default. */
export async function openTransferReceiver(
  answer: (event: ReceivedTransfer, response: ServerResponse) => void = (_, response) =>
    void response.writeHead(204).end(),
): Promise<TransferReceiver> {
  const received: ReceivedTransfer[] = [];
  const listening = await listen((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const headers = Object.fromEntries(
        Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
      );
      const body = Buffer.concat(chunks).toString();
      const event = eventSchema.parse(new Webhook(webhookSecret).verify(body, headers));
      received.push(event);
      answer(event, response);
    });
  });
  return {
    ...listening,
    received,
    firstOnes() {
      const seen = new Set<string>();
      return received.filter(({ id }) => !seen.has(id) && seen.add(id));
    },
  };
}

/**
 * State of a receiver after these events: the block of each transfer that they name, and
 * whether that is final.
 *
 * @throws where an event contradicts the one before of its transfer
 */
export function believe(events: readonly ReceivedTransfer[]): Map<string, string> {
  const beliefs = new Map<string, string>();
  for (const { type, data } of events) {
    const key = `${data.transactionHash} ${data.transferIndex}`;
    const before = beliefs.get(key);
    const included = `${data.blockHash} included`;
    const allowed: Readonly<Record<string, boolean>> = {
      "transfer.included": before === undefined,
      "transfer.final": before === included,
      "transfer.reverted": before === included || before === `${data.blockHash} final`,
    };
    if (allowed[type] !== true) throw new Error(`${type} of ${key} after ${before}`);
    if (type === "transfer.included") beliefs.set(key, included);
    else if (type === "transfer.final") beliefs.set(key, `${data.blockHash} final`);
    else beliefs.delete(key);
  }
  return beliefs;
}
