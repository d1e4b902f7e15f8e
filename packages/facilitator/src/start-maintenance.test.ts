import { systemClock } from "@coinslot/chain";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { reservePayment } from "./ledger/payments/reserve-payments.ts";
import { silentLogger } from "./logger.ts";
import { createMetrics } from "./settle/metrics.ts";
import { createOutcomeNotifier } from "./settle/outcome-notifier.ts";
import { startMaintenance } from "./start-maintenance.ts";
import { ledgerForEachTest } from "./testing/ledger-for-each-test.ts";
import { stateOf, wish } from "./testing/ledger-payments.ts";
import { engines } from "./testing/settling-devnet.ts";

describe.each(engines)("maintenance on %s", (engine) => {
  const { join, silence } = ledgerForEachTest(engine);

  it("releases the holdings of others one round after a standstill of the database", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const running = await reservePayment(one, wish());
    if (running.outcome !== "reserved") throw new Error(running.outcome);
    await silence("one");
    await silence("two");
    const rounds: (() => void)[] = [];
    const setTimer = (round: () => void) => {
      rounds.push(round);
      return () => undefined;
    };
    const notifier = await createOutcomeNotifier({
      ledger: two,
      clock: systemClock,
      logger: silentLogger,
      metrics: createMetrics(),
      emit: () => undefined,
      pollMs: 1_000,
    });
    onTestFinished(() => notifier.stop());
    const maintenance = startMaintenance({
      context: {
        ledger: two,
        notifier,
        clock: { ...systemClock, setTimer },
        logger: silentLogger,
      },
      heartbeatLeaseMs: two.heartbeatLeaseMs,
      refreshStops: async () => undefined,
    });
    onTestFinished(() => maintenance.stop());
    await vi.waitFor(() => expect(rounds).toHaveLength(1));
    expect(await stateOf(two, running.paymentId)).toBe("reserved");
    rounds.pop()?.();
    await vi.waitFor(() => expect(rounds).toHaveLength(1));
    expect(await stateOf(two, running.paymentId)).toBe("released");
  });
});
