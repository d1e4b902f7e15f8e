import type { SettlementNetwork } from "../context.ts";
import type { KnownQueues } from "../plan/known-queue.ts";
import { isReady, type Relayer } from "../relay/relayer-context.ts";
import type { RelayerFunds } from "../relay/relayer-funds.ts";
import { countInFlight } from "../relay/relayer-state.ts";
import type { RelayerSharing } from "./share-relayers.ts";

/** The members of a relayer that decide whether it can settle. */
type AbleRelayer = Pick<Relayer, "address" | "state" | "leaving" | "signer">;

/** The relayers of a network, and their gas money. */
export interface Able<Each extends AbleRelayer = AbleRelayer> {
  relayers: readonly Each[];
  funds: Pick<RelayerFunds, "sufficeFor">;
  network: Pick<SettlementNetwork, "maxInFlight">;
}

/** True if a relayer that this process plans for can pay, as far as is known. */
export function canSettle({ relayers, funds }: Able): boolean {
  return relayers.some((relayer) => isReady(relayer) && funds.sufficeFor(relayer.address));
}

/**
 * Relayers with gas money. If none has any, all: the little that is left may be enough for the
 * queue.
 */
export function findPayingRelayers<Each extends AbleRelayer>({
  relayers,
  funds,
}: Pick<Able<Each>, "relayers" | "funds">): readonly Each[] {
  const able = relayers.filter(({ address }) => funds.sufficeFor(address));
  return able.length > 0 ? able : relayers;
}

/**
 * True if this process may settle what others have left: a relayer that it plans for may send
 * another transaction. One without gas money may not while another relayer of the network has some.
 */
export function maySweep(able: Able): boolean {
  return findPayingRelayers(able).some(
    (relayer) => isReady(relayer) && countInFlight(relayer.state) < able.network.maxInFlight,
  );
}

/**
 * Milliseconds for which this process leaves a payment to another one, in intervals of sweeps. None
 * where that is no settler; one where it has handed the payment over. After a takeover of the
 * relayer that it may have been handed to, none. Otherwise more, and most where this process has
 * work of its own: overloaded processes must not race for each other's payments. They also sweep
 * more often than the interval, so the sweeps themselves count for nothing.
 */
export function patienceOf(
  able: Able & {
    sharing: Pick<RelayerSharing, "isSettler" | "hasRelayer">;
    sweep: { isTakeover: boolean };
    queues: Pick<KnownQueues, "ids">;
  },
  { sweepMs }: { sweepMs: number },
): (processId: string) => number {
  const { relayers, sharing, sweep, queues } = able;
  const isIdle =
    queues.ids().length === 0 &&
    relayers.some((relayer) => isReady(relayer) && countInFlight(relayer.state) === 0);
  // Half an interval less: sweeps come a little early or late.
  const intervals = (count: number) => (count - 1 / 2) * sweepMs;
  const withSettling = intervals(isIdle ? 5 : 20);
  const withHandedOver = sweep.isTakeover ? 0 : intervals(1);
  return (processId) => {
    if (!sharing.isSettler(processId)) return 0;
    return sharing.hasRelayer(processId) ? withSettling : withHandedOver;
  };
}
