import { createBlockWatcher, httpPost, systemClock } from "@coinslot/chain";
import { startDevnet } from "@coinslot/devnet";
import { DatabaseError } from "@coinslot/storage";
import { expect, it, onTestFinished } from "vitest";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { silentLogger } from "../logger.ts";
import { createSimulationCache } from "../simulation/simulation-cache.ts";
import { createSimulator } from "../simulation/simulator.ts";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import { createPool } from "../testing/verifying-devnet.ts";
import { createBlockClock } from "./block-clock.ts";
import { startNetworkSettlement } from "./engine.ts";
import { createDebitedPayments } from "./evidence/debited-payments.ts";
import { createLateLogs } from "./evidence/late-logs.ts";
import { createMetrics } from "./metrics.ts";
import { createOutcomeNotifier } from "./outcome-notifier.ts";
import { createBlockPace } from "./pace/block-pace.ts";
import { createPacedTimes } from "./pace/paced-times.ts";
import { createSpoiltBatches } from "./plan/spoilt-batches.ts";
import { createFeeQuoter } from "./relay/fee-quote.ts";
import { createTrialFloor } from "./trial-floor.ts";

const { join } = ledgerForEachTest("sqlite");

/** The ledger, and its subscriptions. The database refuses one of them. */
function refuseChannel(ledger: LedgerContext, refused: string) {
  const subscribed = new Set<string>();
  const refusing: LedgerContext = {
    ...ledger,
    async listen(channel, handler) {
      if (channel === refused) throw new DatabaseError("connection-lost", "The connection broke");
      const end = await ledger.listen(channel, handler);
      subscribed.add(channel);
      return async () => {
        subscribed.delete(channel);
        await end();
      };
    },
  };
  return { refusing, subscribed };
}

it.each(["coinslot_queue", "coinslot_chain", "coinslot_undone"])(
  "a network start that fails to subscribe to %s leaves no subscription behind",
  async (refused) => {
    const devnet = await startDevnet();
    onTestFinished(() => devnet.stop());
    const { network, chainId } = devnet;
    const pool = createPool(devnet, httpPost);
    onTestFinished(() => pool.close());
    const watcher = createBlockWatcher({ pool, clock: systemClock });
    onTestFinished(() => watcher.close());
    const { refusing, subscribed } = refuseChannel(await join("one"), refused);
    const parts = {
      ledger: refusing,
      clock: systemClock,
      logger: silentLogger,
      metrics: createMetrics(),
      emit: () => undefined,
    };
    const notifier = await createOutcomeNotifier({ ...parts, pollMs: 10_000 });
    onTestFinished(() => notifier.stop());
    const before = [...subscribed];

    const pace = createBlockPace({ usualMs: undefined, now: () => 0 });
    const started = startNetworkSettlement({
      context: {
        ...parts,
        notifier,
        simulationCache: createSimulationCache({
          freshMs: 1,
          keepMs: 1,
          callGasOf: () => 300_000n,
          now: Date.now,
        }),
        times: {
          leaseMs: 10_000,
          sweepMs: 10_000,
          leadMs: 10_000,
          settlingMs: 10_000,
          disputeMs: 120_000,
          refundMs: 10_000,
          idleMs: 10_000,
        },
        now: Date.now,
        faultPoint: () => undefined,
      },
      network: {
        network,
        chainId,
        rpc: pool,
        watcher,
        pace,
        times: createPacedTimes(pace, {}),
        blocks: createBlockClock({ blockTimeMs: undefined, now: Date.now }),
        simulator: createSimulator({ rpc: pool, now: Date.now }),
        trialFloor: createTrialFloor(
          async () => ({ number: (await watcher.read(0)).number, ageMs: 0 }),
          () => 1_000,
        ),
        fees: createFeeQuoter({
          rpc: pool,
          feeModel: "eip1559",
          maxFeePerGasCap: 1_000_000_000n,
          readHead: watcher.fresh,
          headAgeMs: () => 0,
          now: Date.now,
        }),
        multicall3: undefined,
        debited: createDebitedPayments({ rpc: pool, watcher, clock: systemClock }),
        lateLogs: createLateLogs({ now: Date.now }),
        limits: { maxPayments: 1, maxGas: 1_000_000n },
        spoilt: createSpoiltBatches({ now: Date.now }),
        maxInFlight: 1,
        callGasCap: 300_000n,
        pollMs: 10_000,
        serveAfter: () => 0,
        finalAfter: 0,
      },
      signers: [],
      retiring: [],
      funds: { minimumBalance: 0n, warningBalance: 0n },
    });

    await expect(started).rejects.toThrow(DatabaseError);
    expect([...subscribed]).toEqual(before);
  },
);
