import { createTestDatabase } from "@coinslot/devnet";
import { byDay } from "@coinslot/devnet/effort";
import type { WireName } from "@coinslot/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buy } from "./buyer.ts";
import { readChain } from "./chain-record.ts";
import { awaitRest } from "./ledger-at-rest.ts";
import { type LiveChain, startLiveChain } from "./live-chain.ts";
import { findViolations } from "./oracle.ts";
import { failsOnce, type PlannedPurchase, planPurchases } from "./purchase.ts";
import { fundPayers, openScene, type Scene } from "./scene.ts";
import { createRandom } from "./seeded-random.ts";
import { signPurchase } from "./sign-purchase.ts";
import { type KillPoint, killPoints } from "./worker-messages.ts";
import { startWorker, type WorkerProcess } from "./worker-process.ts";

const engines = {
  sqlite: async () => ({ url: undefined, drop: async () => undefined }),
  postgres: createTestDatabase,
};

/**
 * Before anything is stored that outlives the process, the answer dies with it, and the handler
 * runs again.
 */
const runsAgain: ReadonlySet<KillPoint> = new Set(["handling"]);

describe.each(byDay(["sqlite"], ["sqlite", "postgres"]))("a seller on %s", (engine) => {
  const random = createRandom(`kill points on ${engine}`);
  let scene: Scene;
  let chain: LiveChain;
  let seller: WorkerProcess;
  let purchases: PlannedPurchase[];
  let dropDatabase: () => Promise<unknown>;

  beforeAll(async () => {
    const { url, drop } = await engines[engine]();
    dropDatabase = drop;
    scene = await openScene({ random, postgresUrl: url, faultShare: 0 });
    const { devnet } = scene;
    const planned = planPurchases({ count: 60, random, now: Date.now() });
    purchases = planned
      .filter(isPlain)
      .slice(0, killPoints.length)
      .map((each, index) => ({ ...each, wire: wireOf(engine, index) }));
    await fundPayers(devnet, purchases);
    await devnet.setAutomine(false);
    chain = startLiveChain({ devnet, random });
    seller = await startWorker(scene.program);
  }, 180_000);

  afterAll(async () => {
    await seller?.kill();
    await chain?.stop();
    await scene?.close({ keepsFiles: false });
    await dropDatabase?.();
  });

  test.each(killPoints.map((point, index) => ({ point, index, wire: wireOf(engine, index) })))(
    "makes one transfer for $wire, and leaves nothing stuck, when it is killed at $point and started again",
    { timeout: 120_000 },
    async ({ point, index }) => {
      const planned = purchases[index];
      if (planned === undefined) throw new Error("There are fewer purchases than kill points.");
      const signal = AbortSignal.timeout(100_000);
      const purchase = await signPurchase({
        devnet: scene.devnet,
        planned,
        sellerUrl: async () => seller.url,
        signal,
      });
      seller.killAt(point, 1);
      const restarted = seller.gone.then(async () => {
        seller = await startWorker(scene.program);
      });

      const bought = await buy({
        purchase,
        signal,
        onBegun: () => undefined,
        async sellerUrl() {
          if (!seller.isAlive()) await restarted;
          return seller.url;
        },
      });
      await restarted;

      const ledger = await awaitRest(seller);
      const runs = await scene.handlerRuns();
      const evidence = {
        chain: await readChain(scene.devnet),
        ledger: ledger.map((payment) => ({ ...payment, isFinal: true })),
        bought: [bought],
        runs,
        replaced: chain.replaced,
        broadcasts: scene.proxy.broadcasts(),
      };
      expect(findViolations(evidence)).toEqual([]);
      expect(bought).toMatchObject({ outcome: { kind: "served" }, deliveries: 1 });
      expect(runs.get(purchase.path)).toHaveLength(runsAgain.has(point) ? 2 : 1);
    },
  );
});

/** Each point is reached by MPP on one engine, and by a version of x402 on the other. */
function wireOf(engine: "sqlite" | "postgres", index: number): WireName {
  const versions = ["x402v1", "x402v2"] as const;
  const isByMpp = (engine === "sqlite") === (index % 2 === 0);
  return isByMpp ? "mpp" : (versions[(index >> 1) % versions.length] ?? "x402v2");
}

/** A purchase of a report whose buyer sends a key, waits, and is left in peace. */
function isPlain(planned: PlannedPurchase): boolean {
  const { interference, hasKey, isTwin, hangsUpAfterMs, flow } = planned;
  const isCalm = !isTwin && hangsUpAfterMs === undefined && !failsOnce(planned);
  return isCalm && interference === "none" && hasKey && flow === "authorization";
}
