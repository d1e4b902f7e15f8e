import { findReceivers, type SettledReceiver } from "../../ledger/channels/channel-settles.ts";
import type { ChannelsContext } from "../channels-context.ts";

/** An account that receives claimed money of a token. */
export type Receiver = Pick<SettledReceiver, "receiver" | "token">;

/** Memory of one process about the receivers of claims. */
export interface KnownReceivers {
  /** `undefined`: the ledger's are to be read. */
  receivers: Map<string, Receiver> | undefined;
}

/**
 * The receivers of claims. They are read from the ledger once, and the planner adds those of later
 * ones.
 *
 * @throws DatabaseError
 */
export async function receiversOf(
  { context: { ledger }, place }: Pick<ChannelsContext, "context" | "place">,
  memory: KnownReceivers,
): Promise<Map<string, Receiver>> {
  memory.receivers ??= new Map(
    (await findReceivers(ledger, place)).map((each) => [`${each.receiver}/${each.token}`, each]),
  );
  return memory.receivers;
}
