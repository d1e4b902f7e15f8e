import { RpcUnavailableError } from "@coinslot/chain";
import type { Address, Network } from "@coinslot/protocol";
import type { RefundSettings } from "../configuration/refund-options.ts";
import {
  findDueRefunds,
  findFloats,
  findNextLooks,
  moveRefund,
  type RefundChange,
  recallRefunds,
} from "../ledger/refunds/move-refund.ts";
import type { RefundRow } from "../ledger/refunds/refund-row.ts";
import { refundUndelivered } from "../ledger/refunds/refund-undelivered.ts";
import { createWorkLease } from "../ledger/work-lease.ts";
import type { SettlementContext } from "../settle/context.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { startPollLoop } from "../settle/pace/poll-loop.ts";
import { createTokenFactsCache } from "../token/token-facts-cache.ts";
import { advanceRefund } from "./advance-refund.ts";
import { later, looks, type RefundsContext } from "./refunds-context.ts";
import { reportRefunds } from "./report-refunds.ts";
import { restAfterFailure } from "./rest-after-failure.ts";

const maxAtOnce = 50;
const floatsMs = 60_000;
const never = Number.POSITIVE_INFINITY;
/** A day is the longest pause, without a route's delay. Clocks may differ by as much. */
const maxUndeliveredWaitMs = 2 * 86_400_000;
/** The longest delay of a route. */
const maxDelayMs = 30 * 86_400_000;
/** The clock of a process that has died since may have put work off. */
const recallMs = 3_600_000;
/** A wall clock that is set back by more may have been far ahead. */
const maxStepMs = 60_000;

/** The refunds of one process. */
export interface RefundsWorker {
  readonly refunds: RefundsContext;
  /** Looks at the refunds that are due, now. */
  wake(): void;
  /** From now on refunds may come by themselves: a route here has promised them. */
  expect(): void;
  stop(): Promise<void>;
}

/**
 * Moves refunds along, one process of the ledger at a time. The lease only saves work: each step
 * names the row as it was read, and a nonce is executed once. A process may die at any step.
 *
 * Each network is a track of its own, and so is the policy of routes: a chain that hangs keeps no
 * other one waiting. Where neither a float nor a route promises refunds, nothing is looked for once
 * none is open, until `wake`.
 */
export function startRefunds(options: {
  context: SettlementContext;
  settings: RefundSettings;
  settlements: ReadonlyMap<Network, NetworkSettlement>;
}): RefundsWorker {
  const { context, settlements } = options;
  const { ledger, clock, logger, times } = context;
  const restMs = looks.forOthers * times.refundMs;
  const refunds = createContext(options);
  const { settings } = refunds;
  const lease = createWorkLease(context, "coinslot:refunds");
  let isExpected = settings.float !== undefined;
  let isStopped = false;
  const tracks = new Map<Network | "undelivered", Promise<void>>();
  /** Networks that no node answers for, with the time of the next attempt by `clock`. */
  const rests = new Map<Network, number>();

  const recallIfDue = createRecall(context);

  const polling = startPollLoop(clock, async () => {
    try {
      return await look();
    } catch (err) {
      if (!isStopped) logger.warn({ err }, "refunds could not be looked for; retrying");
      return restMs;
    }
  });

  async function look(): Promise<number | undefined> {
    const now = ledger.now();
    for (const [network, until] of rests) if (until <= clock.now()) rests.delete(network);
    const idle = [...settlements.keys()].filter((each) => !tracks.has(each) && !rests.has(each));
    try {
      await recallIfDue(now);
    } catch (err) {
      if (!isStopped) logger.warn({ err }, "refunds that wait too long could not be recalled");
    }
    const { refundAt, undeliveredAt } = await findNextLooks(ledger, idle);
    const dueAt = tracks.has("undelivered") ? undefined : undeliveredAt;
    const nextAt = Math.min(refundAt ?? never, dueAt ?? never);
    if (nextAt > now) {
      const mayCome = isExpected || rests.size > 0 || nextAt < never;
      return mayCome ? Math.min(nextAt - now, restMs) : undefined;
    }
    if (!(await lease.hold())) return looks.soon * times.refundMs;
    if (dueAt !== undefined && dueAt <= now) begin("undelivered", applyPolicy);
    if (refundAt !== undefined && refundAt <= now) {
      for (const network of idle) begin(network, () => moveNetwork(network));
    }
    return restMs;
  }

  function begin(name: Network | "undelivered", task: () => Promise<void>): void {
    if (isStopped) return;
    const track = task()
      .then(
        () => looks.busy * times.refundMs,
        (err: unknown) => {
          if (!isStopped) logger.warn({ err }, "refunds could not be moved along; retrying");
          return restMs;
        },
      )
      .then(async (pauseMs) => {
        tracks.delete(name);
        // Another process may have the float, or a network that is not served here.
        if (tracks.size === 0) await lease.release();
        polling.wakeIn(pauseMs);
      });
    tracks.set(name, track);
  }

  async function applyPolicy(): Promise<void> {
    const begun = await refundUndelivered(ledger, settings, {
      onFault: (fault) =>
        logger.warn(fault, "a payment could not be given back by its route's policy; retrying"),
      onLimit: (limited) =>
        logger.error(
          { ...limited, maxPerDay: limited.maxPerDay.toString() },
          "the day's automatic refunds have reached refunds.automatic.maxPerDay; this payment waits for the next day, or for your refund",
        ),
    });
    for (const row of begun) reportRefunds(refunds, row, row);
  }

  async function moveNetwork(network: Network): Promise<void> {
    const due = await findDueRefunds(ledger, { now: ledger.now(), network, limit: maxAtOnce });
    for (const row of due) {
      if (isStopped || rests.has(network) || !(await lease.hold())) return;
      await move(row);
    }
  }

  async function move(row: RefundRow): Promise<void> {
    let change: RefundChange | undefined;
    try {
      change = await advanceRefund(refunds, row);
    } catch (err) {
      logger.warn({ err, refund: row.id }, "a refund could not be moved along; retrying");
      if (isNodeless(err)) rests.set(row.network, clock.now() + looks.waiting * times.refundMs);
      const { state, cause } = row;
      change = later(refunds, looks.waiting, { state, cause });
    }
    // Another process, or the operator, has moved it: that one tells of it.
    if (change !== undefined && !(await moveRefund(ledger, row, change))) return;
    if (change?.state === row.state && change.cause === row.cause) return;
    reportRefunds(refunds, row, change);
  }

  return {
    refunds,
    wake: polling.wake,
    expect() {
      if (isExpected) return;
      isExpected = true;
      polling.wake();
    },
    async stop() {
      isStopped = true;
      await polling.stop();
      await Promise.all(tracks.values());
      await lease.release();
    },
  };
}

/**
 * Recalls work at the start, once the wall clock is set back, and each hour. Not at each look: a
 * process whose clock is behind would do so against all others.
 */
function createRecall({ ledger, clock, logger, times }: SettlementContext) {
  /** No look is later, by clocks that differ by less than the longest pause. */
  const maxWaitMs = 2 * looks.rare * times.refundMs;
  /** By `clock`. */
  let recallAt = -never;
  /** Wall clock less `clock`, at the last look. */
  let offsetMs = -never;
  return async (now: number): Promise<void> => {
    const lastMs = offsetMs;
    offsetMs = now - clock.now();
    if (offsetMs >= lastMs - maxStepMs && clock.now() < recallAt) return;
    // Also where it fails: one that takes too long would hold up each look.
    recallAt = clock.now() + recallMs;
    const latestFrom = now + maxUndeliveredWaitMs;
    const count = await recallRefunds(ledger, {
      ...{ latest: now + maxWaitMs, now },
      ...{ latestFrom, latestDue: latestFrom + maxDelayMs },
    });
    if (count === 0) return;
    logger.warn({ count }, "refunds waited for a time that a clock far ahead set; looking now");
  };
}

function createContext(options: {
  context: SettlementContext;
  settings: RefundSettings;
  settlements: ReadonlyMap<Network, NetworkSettlement>;
}): RefundsContext {
  const { context, settings, settlements } = options;
  const { sign } = settings;
  const restMs = looks.waiting * context.times.refundMs;
  let floats: { read: Promise<readonly Address[]>; at: number } | undefined;
  const facts = new Map(
    [...settlements].map(([network, settlement]) => [
      network,
      createTokenFactsCache({ rpc: settlement.network.rpc, now: context.now }),
    ]),
  );
  return {
    context,
    settings: {
      ...settings,
      sign: sign && restAfterFailure(sign, { now: context.clock.now, restMs }),
    },
    settlements,
    searches: new Map(),
    readFloats() {
      const at = context.clock.now();
      if (floats === undefined || at >= floats.at + floatsMs) {
        floats = { read: findFloats(context.ledger), at };
        floats.read.catch(() => {
          floats = undefined;
        });
      }
      return floats.read;
    },
    async readFacts({ network, asset }) {
      const read = facts.get(network);
      if (read === undefined) throw new TypeError(`${network} is not served here`);
      return read(asset);
    },
  };
}

/** True where no node of the chain answers: the next refund would wait for the same fault. */
function isNodeless(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause) {
    if (each instanceof RpcUnavailableError) return true;
  }
  return false;
}
