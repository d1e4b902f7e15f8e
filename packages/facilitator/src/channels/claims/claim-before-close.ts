import { sleep } from "@coinslot/chain";
import { findSentClaims } from "../../ledger/channels/channel-claims.ts";
import type { ChannelsContext } from "../channels-context.ts";
import type { ClaimPlan } from "./plan-claims.ts";

/** Interval of looks at the claims that are on their way. */
const lookMs = 250;
/** Plans at most: a transaction may end without its claims. */
const maxPlans = 3;

/** Parts of a running network that the claim needs. */
interface Closing {
  context: Pick<ChannelsContext["context"], "ledger" | "clock" | "logger">;
  settings: Pick<ChannelsContext["settings"], "claimAtCloseMs">;
  place: Pick<ChannelsContext["place"], "network">;
}

/** `sent`: rows on their way. */
type Planned = Pick<ClaimPlan, "waiting"> & { sent: readonly unknown[] };

/**
 * Claims all that is unclaimed and worth its gas. Waits until the transactions are in a block, for
 * a time. All else is claimed after the next start: it is on the disk.
 */
export async function claimBeforeClose(
  { context: { ledger, clock, logger }, settings, place: { network } }: Closing,
  claim: () => Promise<Planned>,
): Promise<void> {
  const deadline = clock.now() + settings.claimAtCloseMs;
  for (let plans = 0; plans < maxPlans; plans += 1) {
    const plan = await inTime(claim());
    if (plan === undefined) return;
    const { sent, waiting } = plan;
    if (waiting !== undefined) {
      logger.warn(
        { network, because: waiting },
        "channels wait to be claimed after the next start",
      );
    }
    if (sent.length === 0) return;
    logger.info({ network, rows: sent.length }, "channels are claimed before the close");
    if (!(await follow())) return;
  }

  /** @returns whether all have ended. The rest of the process is stopped in any case. */
  async function follow(): Promise<boolean> {
    try {
      while (await isOnItsWay()) {
        if (clock.now() + lookMs > deadline) {
          logger.warn({ network }, "claims are in no block yet; the next start follows them");
          return false;
        }
        await sleep(clock, lookMs);
      }
      return true;
    } catch (err) {
      logger.warn({ err, network }, "claims could not be followed before the close");
      return false;
    }
  }

  async function inTime(planning: Promise<Planned>): Promise<Planned | undefined> {
    const waiting = new AbortController();
    const late = sleep(clock, Math.max(0, deadline - clock.now()), waiting.signal).then(
      () => undefined,
      () => undefined,
    );
    const planned = planning.catch((err: unknown) => {
      logger.warn({ err, network }, "channels could not be claimed before the close");
      return undefined;
    });
    return Promise.race([planned, late]).finally(() => waiting.abort());
  }

  async function isOnItsWay(): Promise<boolean> {
    const claims = await findSentClaims(ledger, network);
    return claims.some(({ transaction }) => transaction.state === "open");
  }
}
