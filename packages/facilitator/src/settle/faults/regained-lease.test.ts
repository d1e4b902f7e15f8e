import { withDatabase } from "@coinslot/devnet";
import { type Hex, isHex } from "viem";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Logger } from "../../logger.ts";
import { type NodeProxy, startNodeProxy } from "../../testing/node-proxy.ts";
import { settle } from "../../testing/settling-actions.ts";
import {
  engines,
  type SettlingDevnet,
  startSettlingDevnet,
} from "../../testing/settling-devnet.ts";
import type { FaultPointName } from "../context.ts";

let settling: SettlingDevnet | undefined;
let proxy: NodeProxy | undefined;

afterEach(async () => {
  await settling?.stop();
  await proxy?.close();
  settling = undefined;
  proxy = undefined;
});

const taken = "relayer taken";
const givenUp = "relayer given up";

/** A devnet, and a function that makes its relayer lose its lease and take another. */
async function prepare(engine: (typeof engines)[number]) {
  const here = await startSettlingDevnet(engine);
  settling = here;
  const logged: string[] = [];
  const note = (_fields: object, text?: string) => void logged.push(text ?? "");
  const logger: Logger = { debug: note, info: note, warn: note, error: note };
  const times = (text: string) => logged.filter((each) => each === text).length;
  async function changeLease(): Promise<void> {
    await withDatabase(here.ledger.url, ({ execute }) =>
      execute("update coinslot_leases set expires_at_ms = 0 where name like 'relayer:%'"),
    );
    await vi.waitFor(() => expect(times(taken)).toBe(2), 20_000);
  }
  return { here, logger, times, changeLease };
}

/**
 * A facilitator whose relayer loses its lease once while a batch is at a fault point. It has a new
 * one before the batch goes on.
 */
async function begin(engine: (typeof engines)[number], place: FaultPointName) {
  const { here, logger, times, changeLease } = await prepare(engine);
  let isPassed = false;
  const facilitator = await here.start({
    logger,
    times: { leaseMs: 3_000, sweepMs: 100 },
    async faultPoint(name) {
      if (name !== place || isPassed) return;
      isPassed = true;
      await changeLease();
      if (name !== "stored") return;
      await vi.waitFor(async () => {
        const { payments } = await facilitator.payments.list();
        expect(payments.map(({ state }) => state)).toContain("confirmed");
      }, 20_000);
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
    }, 20_000);
    expect([times(taken), times(givenUp)]).toEqual([2, 1]);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(2_000n);
  });

  it("finds the form that replaces a transaction found stuck under the old one", async () => {
    const { here, logger, times, changeLease } = await prepare(engine);
    const { devnet } = here;
    const forms = new Set<Hex>();
    let isPassed = false;
    proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [raw] }, ask) => {
      if (method === "eth_getTransactionCount" && forms.size === 1 && !isPassed) {
        isPassed = true;
        await changeLease();
      }
      const answer = await ask();
      if (method !== "eth_sendRawTransaction" || !isHex(raw) || forms.has(raw)) return answer;
      forms.add(raw);
      // The block has the second form.
      if (forms.size === 2) await devnet.mine();
      return answer;
    });
    const facilitator = await here.start({
      logger,
      network: { rpcUrls: [proxy.url] },
      times: { leaseMs: 3_000, sweepMs: 100, resendMs: 300, replaceMs: 300, loseMs: 60_000 },
    });
    await devnet.setAutomine(false);
    expect(await settle(facilitator, await here.pay())).toMatchObject({ success: true });
    expect([isPassed, times(taken)]).toEqual([true, 2]);
    expect(await here.balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
  });
});
