import { createTestDatabase } from "@coinslot/devnet";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readChain } from "./chain-record.ts";
import { awaitFinality, awaitRest } from "./ledger-at-rest.ts";
import { type LiveChain, startLiveChain } from "./live-chain.ts";
import { startLoad } from "./load.ts";
import { findViolations } from "./oracle.ts";
import { planPurchases } from "./purchase.ts";
import { fundPayers, openScene, type Scene } from "./scene.ts";
import { createRandom } from "./seeded-random.ts";
import { startWorker, type WorkerProcess } from "./worker-process.ts";

/** Processes start together, possibly on a busy machine. */
const patienceMs = 600_000;
const random = createRandom("four processes");
let scene: Scene;
let chain: LiveChain;
let workers: WorkerProcess[] = [];
let dropDatabase: () => Promise<void>;

beforeAll(async () => {
  const { url, drop } = await createTestDatabase();
  dropDatabase = drop;
  scene = await openScene({ random, postgresUrl: url, faultShare: 0 });
  workers = await Promise.all(Array.from({ length: 4 }, () => startWorker(scene.program)));
  await scene.devnet.setAutomine(false);
  chain = startLiveChain({ devnet: scene.devnet, random });
}, patienceMs);

afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.kill()));
  await chain?.stop();
  await scene?.close({ keepsFiles: false });
  await dropDatabase?.();
});

test("four processes under load survive the death of the settling one", {
  timeout: patienceMs,
}, async () => {
  const { devnet, proxy } = scene;
  const purchases = planPurchases({ count: 120, random, now: Date.now() });
  await devnet.setAutomine(true);
  await fundPayers(devnet, purchases);
  await devnet.setAutomine(false);

  // Only the relayer lease's holder broadcasts; it dies in the middle of that.
  for (const worker of workers) worker.killAt("broadcast", 3);
  const death = Promise.race(workers.map(async (worker) => worker.gone.then(() => worker)));
  const forgotten = death.then(() => {
    for (const worker of workers) worker.letLive();
  });
  const load = startLoad({
    devnet,
    purchases,
    concurrency: 40,
    chain,
    signal: AbortSignal.timeout(patienceMs),
    async sellerUrl() {
      const [first, ...others] = workers.filter((worker) => worker.isAlive());
      if (first === undefined) throw new Error("No seller runs.");
      return random.pick([first, ...others]).url;
    },
  });
  load.allow(purchases.length);
  const bought = await load.done;
  await forgotten;

  const survivors = workers.filter((worker) => worker.isAlive());
  expect(survivors).toHaveLength(3);
  const [witness] = survivors;
  if (witness === undefined) throw new Error("No process is left.");
  await awaitRest(witness);
  const ledger = await awaitFinality(witness);
  await chain.stop();
  const violations = findViolations({
    chain: await readChain(devnet),
    ledger,
    bought,
    runs: await scene.handlerRuns(),
    replaced: chain.replaced,
    broadcasts: proxy.broadcasts(),
  });
  expect(violations).toEqual([]);
});
