import type { BlockEvent, BlockHeader } from "@coinslot/chain";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import type { RelayerFunds } from "../relay/relayer-funds.ts";
import { type Sighting, shareSighting } from "./share-sightings.ts";

/** Notifies the other processes of the head, and of the tip that is read with it now and then. */
export async function shareLook(
  { context, network }: { context: SettlementContext; network: SettlementNetwork },
  head: BlockHeader,
): Promise<void> {
  const tip = await network.fees.refreshTip(context.times.idleMs / 2);
  shareSighting(context, network.network, { head, tip });
}

/** Takes over what another process has read. */
export function learnSighting(
  { network, funds }: { network: SettlementNetwork; funds: Pick<RelayerFunds, "learn"> },
  { head, tip, balances = [] }: Sighting,
): void {
  if (head) network.watcher.learn(head);
  if (head) network.blocks.saw(head);
  if (head) network.pace.saw(Number(head.number));
  if (tip !== undefined) network.fees.learnTip(tip);
  funds.learn(balances);
}

/**
 * True if a receipt may have changed before its next poll is due. Blocks left the chain, or nodes
 * announce each new one.
 */
export function mayMoveReceipts(
  event: BlockEvent,
  { rpc }: Pick<SettlementNetwork, "rpc">,
): boolean {
  return rpc.announcesHeads || (event.type !== "advanced" && event.type !== "reset");
}

/** Notifies the other processes on a channel of networks. */
export function notifyOthers(
  { context, network }: { context: SettlementContext; network: SettlementNetwork },
  channel: string,
): void {
  context.ledger.notify(channel, network.network).catch((err: unknown) => {
    context.logger.warn({ err, network: network.network }, "other processes could not be notified");
  });
}
