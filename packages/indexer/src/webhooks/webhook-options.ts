import { type Receiver, type ReceiverOptions, readReceivers } from "@coinslot/webhooks";
import * as z from "zod";

/** Every type of event, in the order of a transfer's life. */
export const transferEventTypes = [
  "transfer.included",
  "transfer.final",
  "transfer.reverted",
] as const;

export type TransferEventType = (typeof transferEventTypes)[number];

/** A receiver of webhooks about watched addresses. `events`: by default all. */
export const webhookSchema = z.strictObject({
  id: z.string().optional(),
  url: z.string().optional(),
  secret: z.string().optional(),
  secrets: z.array(z.string().optional()).optional(),
  events: z.array(z.enum(transferEventTypes)).optional(),
  unsafeAllowPrivateAddresses: z.boolean().optional(),
});

/** A receiver as configured. */
export type IndexerReceiver = Receiver<TransferEventType>;

/** Reads the receivers. `undefined`: this process does not decide which there are. */
export function readIndexerReceivers(
  options: readonly z.output<typeof webhookSchema>[] | undefined,
) {
  const receivers = options?.map(
    ({ url, ...others }): ReceiverOptions<TransferEventType> => ({ url, ...others }),
  );
  return readReceivers(receivers, { all: transferEventTypes, usual: transferEventTypes });
}
