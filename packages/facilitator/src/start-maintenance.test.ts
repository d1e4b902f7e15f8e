import { systemClock } from "@coinslot/chain";
import { DatabaseError } from "@coinslot/storage";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { LedgerContext } from "./ledger/ledger-context.ts";
import { sendHeartbeat } from "./ledger/maintenance/processes.ts";
import { reservePayment } from "./ledger/payments/reserve-payments.ts";
import { silentLogger } from "./logger.ts";
import { createLedgerHealth } from "./ready/ledger-health.ts";
import { createMetrics } from "./settle/metrics.ts";
import { createOutcomeNotifier } from "./settle/outcome-notifier.ts";
import { startMaintenance } from "./start-maintenance.ts";
import { ledgerForEachTest } from "./testing/ledger-for-each-test.ts";
import { stateOf, wish } from "./testing/ledger-payments.ts";
import { engines } from "./testing/settling-devnet.ts";

describe.each(engines)("maintenance on %s", (engine) => {
  const { join, silence, wait } = ledgerForEachTest(engine);

  /** Starts maintenance whose next round waits in `rounds`. */
  async function start(ledger: LedgerContext, reports?: { fault: Error; found: unknown[] }) {
    const rounds: (() => void)[] = [];
    const setTimer = (round: () => void) => {
      rounds.push(round);
      return () => undefined;
    };
    const notifier = await createOutcomeNotifier({
      ledger,
      clock: systemClock,
      logger: silentLogger,
      metrics: createMetrics(),
      emit: () => undefined,
      pollMs: 1_000,
    });
    onTestFinished(() => notifier.stop());
    const maintenance = startMaintenance({
      context: {
        ledger,
        notifier,
        clock: { ...systemClock, setTimer },
        logger: silentLogger,
      },
      heartbeatLeaseMs: ledger.heartbeatLeaseMs,
      // Hangs, as on a locked table.
      refreshStops: () => new Promise<void>(() => undefined),
      health: createLedgerHealth({ logger: silentLogger, clock: systemClock }),
      async verify() {
        if (reports) throw reports.fault;
      },
      onReplaced(reason) {
        if (reports) reports.found.push(reason);
        else expect.unreachable(String(reason));
      },
    });
    onTestFinished(() => maintenance.stop());
    await vi.waitFor(() => expect(reports?.found ?? rounds).toHaveLength(1), 20_000);
    return {
      rounds,
      async nextRound() {
        rounds.pop()?.();
        await vi.waitFor(() => expect(rounds).toHaveLength(1), 20_000);
      },
    };
  }

  it("releases the holdings of others a lease after a standstill of the database", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const running = await reservePayment(one, wish());
    if (running.outcome !== "reserved") throw new Error(running.outcome);
    await silence("one");
    await silence("two");
    const { nextRound } = await start(two);
    await nextRound();
    expect(await stateOf(two, running.paymentId)).toBe("reserved");
    wait(two.heartbeatLeaseMs);
    await nextRound();
    expect(await stateOf(two, running.paymentId)).toBe("released");
  });

  it("leaves the work for all processes to the first one, and to the next once that one is dead", async () => {
    const [first, second, dead] = [await join("1"), await join("2"), await join("3")];
    const running = await reservePayment(dead, wish());
    if (running.outcome !== "reserved") throw new Error(running.outcome);
    await silence("3");
    await sendHeartbeat(second);
    let transactions = 0;
    const write: LedgerContext["write"] = (work, options) => {
      transactions += 1;
      return second.write(work, options);
    };
    const { nextRound } = await start({ ...second, write });
    expect(transactions).toBe(1);
    expect(await stateOf(first, running.paymentId)).toBe("reserved");
    await silence("1");
    await nextRound();
    expect(await stateOf(first, running.paymentId)).toBe("released");
  });

  it("gives a ledger up whose disk has failed to keep what was written, and writes no heartbeat", async () => {
    const one = await join("one");
    const { writtenAt } = one.heartbeat;
    const found: unknown[] = [];
    const fault = new DatabaseError("connection-lost", "unknown whether it is on the disk");
    const { rounds } = await start(one, { fault, found });
    expect(found).toEqual([fault]);
    expect(rounds).toEqual([]);
    expect(one.heartbeat.writtenAt).toBe(writtenAt);
  });
});
