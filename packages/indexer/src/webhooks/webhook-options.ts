import { type Receiver, type ReceiverOptions, readReceivers } from "@coinslot/webhooks";
import * as z from "zod";

/** Every type of event, in the order of a transfer's life. */
export const transferEventTypes = [
  "transfer.included",
  "transfer.final",
  "transfer.reverted",
] as const;

export type TransferEventType = (typeof transferEventTypes)[number];

/**
 * A receiver of webhooks about watched addresses. `events`: by default all. `owner`: API keys of it
 * may change the addresses, replay and test; by default none may.
 */
export const webhookSchema = z.strictObject({
  id: z.string().optional(),
  url: z.string().optional(),
  secret: z.string().optional(),
  secrets: z.array(z.string().optional()).optional(),
  events: z.array(z.enum(transferEventTypes)).optional(),
  unsafeAllowPrivateAddresses: z.boolean().optional(),
  owner: z.string().min(1).max(200).optional(),
});

/** A receiver as configured. */
export interface IndexerReceiver extends Receiver<TransferEventType> {
  owner: string | undefined;
}

/** Reads the receivers. `undefined`: this process does not decide which there are. */
export function readIndexerReceivers(
  options: readonly z.output<typeof webhookSchema>[] | undefined,
) {
  const types = { all: transferEventTypes, usual: transferEventTypes };
  const { receivers, problems } = readReceivers(
    options?.map(
      ({ url, owner: _owner, ...others }): ReceiverOptions<TransferEventType> => ({
        url,
        ...others,
      }),
    ),
    types,
  );
  // Without a problem there is one receiver for each of the options.
  const owned = receivers?.map(
    (each, index): IndexerReceiver => ({ ...each, owner: options?.[index]?.owner }),
  );
  return { receivers: owned, problems };
}
