import { findReceivers, type SettledReceiver } from "../../ledger/channels/channel-settles.ts";
import type { ChannelsContext } from "../channels-context.ts";

/** An account that receives claimed money of a token. */
export type Receiver = Pick<SettledReceiver, "receiver" | "token">;

/** Memory of one process about the receivers of claims. */
export interface KnownReceivers {
  /** Those that were ever found here. */
  readonly receivers: Map<string, Receiver>;
}

/**
 * The receivers of claims. The planner notes its own. Those of other processes are read from the
 * ledger in each look: a process that was frozen may have missed that another one claimed.
 *
 * @throws DatabaseError
 */
export async function receiversOf(
  { context: { ledger }, place }: Pick<ChannelsContext, "context" | "place">,
  { receivers }: KnownReceivers,
): Promise<ReadonlyMap<string, Receiver>> {
  for (const each of await findReceivers(ledger, place)) {
    receivers.set(`${each.receiver}/${each.token}`, each);
  }
  return receivers;
}
