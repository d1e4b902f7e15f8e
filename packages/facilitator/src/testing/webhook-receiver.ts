import type { IncomingMessage, ServerResponse } from "node:http";
import { type Listening, listen } from "@coinslot/devnet";
import { Webhook } from "standardwebhooks";
import * as z from "zod";

/** Secret of the receivers of tests. */
export const webhookSecret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

const eventSchema = z.object({
  id: z.string(),
  type: z.string(),
  timestamp: z.string(),
  data: z.looseObject({ payment: z.string() }),
});

export type ReceivedWebhook = z.infer<typeof eventSchema>;

/** A server that verifies webhooks, and keeps them in the order of their arrival. */
export interface WebhookReceiver extends Listening {
  received: ReceivedWebhook[];
  typesOf(payment: string): string[];
}

/** Starts a receiver, which answers 204 by default. */
export async function openWebhookReceiver(
  answer: (event: ReceivedWebhook, response: ServerResponse, request: IncomingMessage) => void = (
    _,
    response,
  ) => void response.writeHead(204).end(),
): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = [];
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
      answer(event, response, request);
    });
  });
  return {
    ...listening,
    received,
    typesOf: (payment) =>
      received.filter(({ data }) => data.payment === payment).map(({ type }) => type),
  };
}
