import { systemClock } from "@coinslot/chain";
import { sql } from "kysely";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { LedgerContext } from "./ledger/ledger-context.ts";
import { releasePayment } from "./ledger/payments/release-payment.ts";
import { reservePayment } from "./ledger/payments/reserve-payments.ts";
import { silentLogger } from "./logger.ts";
import { startRetention } from "./start-retention.ts";
import { ledgerForEachTest } from "./testing/ledger-for-each-test.ts";
import { wish } from "./testing/ledger-payments.ts";
import { engines } from "./testing/settling-devnet.ts";

const day = 86_400_000;

describe.each(engines)("retention on %s", (engine) => {
  const { join, read, wait } = ledgerForEachTest(engine);

  /** A payment that was given up. */
  async function giveUp(ledger: LedgerContext): Promise<void> {
    const wanted = wish({ validBefore: 1n });
    const reserved = await reservePayment(ledger, wanted);
    if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
    const { payer } = wanted.id;
    await releasePayment(ledger, { token: reserved.token, payer, countsAgainstPayer: false });
  }

  const archived = () => read(sql`select id from archived_payments`);

  /** Retention whose timers the test fires. */
  function start(ledger: LedgerContext) {
    const timers: { run: () => void; delayMs: number }[] = [];
    const setTimer = (run: () => void, delayMs: number) => {
      timers.push({ run, delayMs });
      return () => undefined;
    };
    const retention = startRetention({
      context: { ledger, clock: { ...systemClock, setTimer }, logger: silentLogger },
      times: { keepSignaturesMs: day, keepPaymentsMs: undefined, keepUndeliveredMs: undefined },
      heartbeatLeaseMs: 10_000,
    });
    onTestFinished(() => retention.stop());
    return {
      stop: () => retention.stop(),
      /** Runs until it rests. */
      async finishPass(): Promise<void> {
        for (;;) {
          await vi.waitFor(() => expect(timers).toHaveLength(1), 20_000);
          if (timers[0]?.delayMs === 60_000) return;
          timers.pop()?.run();
        }
      },
      beginPass: () => timers.pop()?.run(),
    };
  }

  it("walks over the old payments at its start, and again after a rest", async () => {
    const ledger = await join("one");
    await giveUp(ledger);
    wait(2 * day);
    const retention = start(ledger);
    await retention.finishPass();
    expect(await archived()).toHaveLength(1);
    await giveUp(ledger);
    wait(2 * day);
    retention.beginPass();
    await retention.finishPass();
    expect(await archived()).toHaveLength(2);
  });

  it("waits for the end of a process of the previous release", async () => {
    const ledger = await join("one");
    await giveUp(ledger);
    await read(sql`insert into processes (id, heartbeat_at) values ('previous', 1)`);
    wait(2 * day);
    const retention = start(ledger);
    await retention.finishPass();
    expect(await archived()).toEqual([]);
    await read(sql`delete from processes where id = 'previous'`);
    retention.beginPass();
    await retention.finishPass();
    expect(await archived()).toHaveLength(1);
  });

  it("is left to one process at a time, and to the next when that one ends", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const first = start(one);
    await vi.waitFor(
      async () =>
        expect(
          await read(sql`select name from coinslot_leases where name = 'coinslot:retention'`),
        ).toHaveLength(1),
      20_000,
    );
    await giveUp(one);
    wait(2 * day);
    const second = start(two);
    await second.finishPass();
    expect(await archived()).toEqual([]);
    await first.stop();
    second.beginPass();
    await second.finishPass();
    expect(await archived()).toHaveLength(1);
  });
});
