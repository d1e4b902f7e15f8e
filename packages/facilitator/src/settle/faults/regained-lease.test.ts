import { withDatabase } from "@coinslot/devnet";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Logger } from "../../logger.ts";
import { settle } from "../../testing/settling-actions.ts";
import {
  engines,
  type SettlingDevnet,
  startSettlingDevnet,
} from "../../testing/settling-devnet.ts";
import type { FaultPointName } from "../context.ts";

let settling: SettlingDevnet | undefined;

afterEach(async () => {
  await settling?.stop();
  settling = undefined;
});

const taken = "relayer taken";
const givenUp = "relayer given up";

/**
 * A facilitator whose relayer loses its lease once while a batch is at a fault point, and has a new
 * one before the batch goes on.
 */
async function begin(engine: (typeof engines)[number], place: FaultPointName) {
  const here = await startSettlingDevnet(engine);
  settling = here;
  const logged: string[] = [];
  const note = (_fields: object, text?: string) => void logged.push(text ?? "");
  const logger: Logger = { debug: note, info: note, warn: note, error: note };
  const times = (text: string) => logged.filter((each) => each === text).length;
  let isPassed = false;
  const facilitator = await here.start({
    logger,
    times: { leaseMs: 1_000, sweepMs: 100 },
    async faultPoint(name) {
      if (name !== place || isPassed) return;
      isPassed = true;
      await withDatabase(here.ledger.url, ({ execute }) =>
        execute("update coinslot_leases set expires_at_ms = 0 where name like 'relayer:%'"),
      );
      await vi.waitFor(() => expect(times(taken)).toBe(2), 10_000);
      if (name !== "stored") return;
      await vi.waitFor(async () => {
        const { payments } = await facilitator.payments.list();
        expect(payments.map(({ state }) => state)).toContain("confirmed");
      }, 10_000);
    },
  });
  return { ...here, facilitator, times };
}

describe.each(engines)("a relayer that regains its lease, on %s", (engine) => {
  it("keeps the new one when a batch was to be stored under the old one", async () => {
    const { devnet, pay, balanceOf, facilitator, times } = await begin(engine, "signed");
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect([times(taken), times(givenUp)]).toEqual([2, 1]);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
  });

  it("follows a batch that was stored under the old one once", async () => {
    const { devnet, pay, balanceOf, facilitator, times } = await begin(engine, "stored");
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    expect(await settle(facilitator, await pay())).toMatchObject({ success: true });
    await vi.waitFor(async () => {
      const metric = "coinslot_transactions_total";
      const transactions = await facilitator.metrics.getSingleMetricAsString(metric);
      expect(transactions).toMatch(/event="stored"} 2$/m);
      expect(transactions).toMatch(/event="settled"} 2$/m);
    }, 5_000);
    expect([times(taken), times(givenUp)]).toEqual([2, 1]);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(2_000n);
  });
});
