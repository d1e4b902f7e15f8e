import { setTimeout as sleep } from "node:timers/promises";
import type { LiveChain } from "./live-chain.ts";
import type { Random } from "./seeded-random.ts";
import type { SellerFleet } from "./seller-fleet.ts";
import type { KillPoint } from "./worker-messages.ts";

/** Where a worker was when it died: a named point, or wherever it happened to be. */
export type KillPlace = KillPoint | "any moment";

/** The faults of the sellers and their chain. */
export interface Calamities {
  kills: ReadonlyMap<KillPlace, number>;
  /** Processes that stood still longer than their leases. */
  freezes: number;
}

/** Longer than the lease of a relayer and than the heartbeat. */
const freezeMs = { least: 3_500, most: 6_000 };

/**
 * Kills this many workers one after the other; in between, freezes some and reorganises the chain.
 * Each kill waits for its share of the load, so that kills and payments end together.
 */
export async function strike(options: {
  kills: number;
  fleet: SellerFleet;
  chain: Pick<LiveChain, "reorganise">;
  random: Random;
  /** Fault points at which workers die. */
  points: readonly [KillPoint, ...KillPoint[]];
  /** A fault point that is not reached in this time is replaced by a kill at any moment. */
  patienceMs?: number;
  /** Lets the n-th share of the load begin, and resolves when the shares before it have begun. */
  feed: (share: number) => Promise<void>;
}): Promise<Calamities> {
  const { kills: wanted, fleet, chain, random, points, feed, patienceMs = 4_000 } = options;
  const kills = new Map<KillPlace, number>();
  const thawing: Promise<void>[] = [];
  for (let kill = 0; kill < wanted; kill += 1) {
    if (random.chance(0.15)) thawing.push(freezeOne());
    if (kill === 0 || random.chance(0.3)) chain.reorganise();
    await fleet.anyone();
    const point = random.chance(0.75) ? random.pick(points) : undefined;
    const place = await killOnce(point, () => feed(kill));
    kills.set(place, (kills.get(place) ?? 0) + 1);
  }
  await Promise.all(thawing);
  return { kills, freezes: thawing.length };

  /** The first process at a point is unknown, so all get the order, and the survivors drop it. */
  async function killOnce(
    point: KillPoint | undefined,
    feedNow: () => Promise<void>,
  ): Promise<KillPlace> {
    if (point === undefined) {
      await feedNow();
      return killAnywhere();
    }
    const passes = random.between(1, 2);
    const death = fleet.nextDeath();
    const workers = fleet.workers();
    for (const worker of workers) worker.killAt(point, passes);
    await feedNow();
    const outcome = await Promise.race([
      death.then(() => "died" as const),
      sleep(patienceMs, "lives" as const, { ref: false }),
    ]);
    for (const worker of workers) worker.letLive();
    return outcome === "died" ? point : killAnywhere();
  }

  async function killAnywhere(): Promise<KillPlace> {
    await sleep(random.between(0, 400));
    await (await fleet.anyone()).kill();
    return "any moment";
  }

  async function freezeOne(): Promise<void> {
    const victim = await fleet.anyone();
    victim.freeze();
    await sleep(random.between(freezeMs.least, freezeMs.most));
    victim.thaw();
  }
}
