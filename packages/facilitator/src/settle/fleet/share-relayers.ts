import { createHash } from "node:crypto";
import { createSingleFlight } from "@coinslot/concurrency";
import { type Address, type Network, toLowerHex } from "@coinslot/protocol";
import { acquireLease, type HeldLease, type LeaseStanding } from "@coinslot/storage";
import { leaseNameOf, relayerPrefix } from "../../ledger/relayer-lease.ts";
import type { SettlementContext } from "../context.ts";
import { leaveRelayer } from "../relay/relayer.ts";
import type { Relayer } from "../relay/relayer-context.ts";
import { countInFlight } from "../relay/relayer-state.ts";
import { shareOut } from "./share-out.ts";

export interface RelayerSharingOptions {
  context: Pick<SettlementContext, "ledger" | "clock" | "times" | "logger">;
  network: Network;
  relayers: readonly Relayer[];
  /** Retiring here: their holder may plan nothing with them, and is handed nothing over. */
  retiring: readonly Address[];
  /** Called after each look at the leases: another process may have a relayer now. */
  onRound: () => void;
}

/** Shares a network's relayers with the other processes of the ledger. */
export interface RelayerSharing {
  /** True if a process lives, and hands over what it cannot settle. As of the last round. */
  isSettler(processId: string): boolean;
  /** True if a process holds a relayer. As of the last round. */
  hasRelayer(processId: string): boolean;
  /** The other processes that hold a relayer, as of the last round. */
  others(): { settlers: readonly string[]; hasOlder: boolean };
  /** Looks at the leases now. */
  trigger(): void;
  /** Notifies the other processes that a lease is free, or that one is wanted. Never rejects. */
  notify(): Promise<void>;
  /** Ends this process's share, so that others need not wait for it. Never rejects. */
  stop(): Promise<void>;
}

/** Channel of processes whose share may have changed. Its payload is the network. */
export const leasesChannel = "coinslot_leases";

interface Sharing extends RelayerSharingOptions {
  /** Names of the relayers' leases. */
  names: ReadonlyMap<string, Relayer>;
  /** Names of the leases of retiring relayers. */
  retired: ReadonlySet<string>;
  /** Beginning of the names under which processes with the same relayers live. */
  groupPrefix: string;
  membership: HeldLease | undefined;
  standing: readonly LeaseStanding[];
  cancelTimer: (() => void) | undefined;
  isStopped: boolean;
}

/**
 * Starts to hold a fair share of the relayers. README.md of the facilitator has the states. A
 * process lives as a settler while it holds a lease of its own name. It renews that with the
 * relayers' leases, so it dies for the others as it loses those.
 */
export function startSharingRelayers(options: RelayerSharingOptions): RelayerSharing {
  const { context, network, relayers, retiring } = options;
  const { ledger, logger } = context;
  const names = new Map(relayers.map((relayer) => [leaseNameOf(relayer.identity), relayer]));
  const sharing: Sharing = {
    ...options,
    names,
    retired: new Set(
      retiring.map((address) => leaseNameOf({ network, relayer: toLowerHex(address) })),
    ),
    groupPrefix: `${settlerPrefix(network)}${hashOf([...names.keys()])}:`,
    membership: undefined,
    standing: [],
    cancelTimer: undefined,
    isStopped: false,
  };
  const round = createSingleFlight(async () => {
    sharing.cancelTimer?.();
    try {
      const hasGained = await share(sharing, { onLost: round.trigger });
      options.onRound();
      // The others give back what is too much for them, and hand over to this process. This one is
      // notified, too: without a gain it must be silent, or its rounds would follow one another.
      if (hasGained) await notify();
    } catch (err) {
      logger.warn({ err, network }, "the relayers' leases could not be read; retrying");
    }
    if (sharing.isStopped) return;
    sharing.cancelTimer = context.clock.setTimer(round.trigger, context.times.leaseMs / 4);
  });
  round.trigger();

  async function notify(): Promise<void> {
    try {
      await ledger.notify(leasesChannel, network);
    } catch (err) {
      logger.warn({ err, network }, "other processes could not be notified of a lease");
    }
  }

  return {
    isSettler: (processId) => holds(sharing, processId, settlerPrefix(network)),
    hasRelayer: (processId) => holds(sharing, processId, relayerPrefix(network)),
    others: () => findOthers(sharing),
    trigger: round.trigger,
    notify,
    async stop() {
      sharing.isStopped = true;
      sharing.cancelTimer?.();
      await round.stop();
      sharing.cancelTimer?.();
      try {
        await sharing.membership?.release();
      } catch (err) {
        logger.warn({ err, network }, "the share in the relayers could not be ended; it expires");
      }
    },
  };
}

function holds({ standing }: Sharing, processId: string, prefix: string): boolean {
  return standing.some(
    ({ owner, name, isHeld }) => isHeld && owner === processId && name.startsWith(prefix),
  );
}

function settlerPrefix(network: Network): string {
  return `settler:${network}:`;
}

/** Names the set of relayers: processes with other ones have another share. */
function hashOf(relayers: readonly string[]): string {
  return createHash("sha256")
    .update([...relayers].sort().join())
    .digest("hex")
    .slice(0, 8);
}

/** Looks at the leases, and makes the next step. Returns whether this process has gained one. */
async function share(sharing: Sharing, { onLost }: { onLost: () => void }): Promise<boolean> {
  const { context, network, names, relayers, groupPrefix } = sharing;
  const { ledger, times } = context;
  const self = ledger.processId;
  let hasGained = sharing.membership === undefined && (await join(sharing, onLost));
  sharing.standing = await ledger.leases.list([relayerPrefix(network), settlerPrefix(network)]);
  const { standing } = sharing;
  const held = standing.filter(({ isHeld }) => isHeld);
  const settlers = held.flatMap(({ name, owner }) => (name.startsWith(groupPrefix) ? [owner] : []));
  const owners = new Map(
    held.flatMap(({ name, owner }) => (names.has(name) ? [[name, owner] as const] : [])),
  );
  // One that is being given back is neither held nor free.
  const isLeaving = ([name, { leaving, state }]: [string, Relayer]) =>
    leaving !== undefined || (owners.get(name) === self && state.lease === undefined);
  const staying = [...names].flatMap((each) => (isLeaving(each) ? [] : [each[0]]));
  const { take, giveBack } = shareOut({
    self,
    relayers: staying,
    settlers: settlers.includes(self) ? settlers : [...settlers, self],
    owners,
  });
  for (const name of take) hasGained = (await takeRelayer(names.get(name))) || hasGained;
  const givable = relayers
    .filter(({ state, leaving }) => state.lease !== undefined && leaving === undefined)
    .sort((a, b) => countInFlight(a.state) - countInFlight(b.state));
  // A relayer on its way to another process does not count in that one's share yet.
  const isUnderWay = staying.length < names.size;
  for (const relayer of isUnderWay ? [] : givable.slice(0, giveBack)) {
    leaveRelayer(relayer, { withinMs: times.leaseMs });
  }
  // Another process has them, or will: it reconciles what was not final.
  for (const relayer of relayers) if (relayer.state.lease === undefined) relayer.resolveSettled();
  if (standing.some(({ name, isHeld }) => !isHeld && name.startsWith(settlerPrefix(network)))) {
    await ledger.leases.forget({ prefix: settlerPrefix(network), endedForMs: times.leaseMs });
  }
  return hasGained;
}

/** Returns whether the lease was taken now: another process may have it, or this one had it. */
async function takeRelayer(relayer: Relayer | undefined): Promise<boolean> {
  const before = relayer?.state.lease;
  await relayer?.keeper.take();
  const lease = relayer?.state.lease;
  return lease !== undefined && lease !== before;
}

/** Returns whether this process lives as a settler now: the ledger may still have its last name. */
async function join(sharing: Sharing, onLost: () => void): Promise<boolean> {
  const { context, network, groupPrefix } = sharing;
  const { ledger, clock, times, logger } = context;
  sharing.membership = await acquireLease({
    leases: ledger.leases,
    name: groupPrefix + ledger.processId,
    owner: ledger.processId,
    ttlMs: times.leaseMs,
    clock,
    onLost() {
      sharing.membership = undefined;
      onLost();
    },
    onError: (err) =>
      logger.warn({ err, network }, "the share in the relayers could not be renewed"),
  });
  return sharing.membership !== undefined;
}

function findOthers({ context, network, standing, retired }: Sharing) {
  const self = context.ledger.processId;
  const held = standing.filter(
    ({ isHeld, owner, name }) => isHeld && owner !== self && !retired.has(name),
  );
  const alive = new Set(
    held.flatMap(({ name, owner }) => (name.startsWith(settlerPrefix(network)) ? [owner] : [])),
  );
  const owners = new Set(
    held.flatMap(({ name, owner }) => (name.startsWith(relayerPrefix(network)) ? [owner] : [])),
  );
  return {
    settlers: [...owners].filter((owner) => alive.has(owner)),
    hasOlder: [...owners].some((owner) => !alive.has(owner)),
  };
}
