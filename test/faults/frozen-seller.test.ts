import { createTestDatabase } from "@coinslot/devnet";
import { toLowerHex } from "@coinslot/protocol";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buy } from "./buyer.ts";
import { readChain } from "./chain-record.ts";
import { awaitRest } from "./ledger-at-rest.ts";
import { type LiveChain, startLiveChain } from "./live-chain.ts";
import { findViolations } from "./oracle.ts";
import { failsOnce, type PlannedPurchase, type Purchase, planPurchases } from "./purchase.ts";
import { fundPayers, openScene, type Scene } from "./scene.ts";
import { createRandom } from "./seeded-random.ts";
import { signPurchase } from "./sign-purchase.ts";
import type { ListedPayment } from "./worker-messages.ts";
import { startWorker, type WorkerProcess } from "./worker-process.ts";

const random = createRandom("a frozen seller");
let scene: Scene;
let chain: LiveChain;
let frozen: WorkerProcess;
let other: WorkerProcess;
let purchases: PlannedPurchase[];
let dropDatabase: () => Promise<unknown>;

beforeAll(async () => {
  const { url, drop } = await createTestDatabase();
  dropDatabase = drop;
  scene = await openScene({ random, postgresUrl: url, faultShare: 0 });
  const { devnet } = scene;
  purchases = planPurchases({ count: 120, random, now: Date.now() });
  await fundPayers(devnet, purchases);
  await devnet.setAutomine(false);
  chain = startLiveChain({ devnet, random });
  [frozen, other] = await Promise.all([startWorker(scene.program), startWorker(scene.program)]);
}, 180_000);

afterAll(async () => {
  await Promise.all([frozen?.kill(), other?.kill()]);
  await chain?.stop();
  await scene?.close({ keepsFiles: false });
  await dropDatabase?.();
});

test.each([{ hasKey: false }, { hasKey: true }])(
  "a seller that freezes in its handler beyond its lease is interrupted, and another serves the twin (key: $hasKey)",
  { timeout: 120_000 },
  async ({ hasKey }) => {
    // By MPP the frozen seller's refusal has no receipt: its run is counted elsewhere.
    const purchase = await sign(
      purchases.find((each) => each.hasKey === hasKey && isTwinOfReport(each)),
    );
    frozen.freezeAt("handling", 1);
    const urls = [Promise.resolve(frozen.url), isReleased(purchase).then(() => other.url)];
    const buying = buy({
      purchase,
      signal: AbortSignal.timeout(100_000),
      onBegun: () => undefined,
      sellerUrl: () => urls.shift() ?? Promise.resolve(other.url),
    });
    await expect
      .poll(() => find(purchase), { timeout: 20_000 })
      .toMatchObject({
        isDelivered: true,
      });
    frozen.thaw();
    const bought = await buying;

    const ledger = await awaitRest(other);
    const runs = await scene.handlerRuns();
    expect(runs.get(purchase.path)).toHaveLength(2);
    expect(bought).toMatchObject({ outcome: { kind: "served" }, deliveries: 1, interruptions: 1 });
    const evidence = {
      chain: await readChain(scene.devnet),
      ledger: ledger.map((payment) => ({ ...payment, isFinal: true })),
      bought: [bought],
      runs,
      replaced: chain.replaced,
      broadcasts: scene.proxy.broadcasts(),
    };
    expect(findViolations(evidence)).toEqual([]);
  },
);

test("a seller that freezes before it answers a payment without a key does not answer after another has", {
  timeout: 120_000,
}, async () => {
  const purchase = await sign(
    purchases.find((each) => !each.hasKey && !each.isTwin && isCalmReport(each)),
  );
  const { path, headers } = purchase;
  const ask = (url: string) => fetch(`${url}${path}`, { headers });
  frozen.freezeAt("settled", 1);
  const first = ask(frozen.url);
  await expect
    .poll(() => find(purchase), { timeout: 20_000 })
    .toMatchObject({ state: "confirmed" });
  // Until the frozen process counts as dead, its reservation holds.
  await expect.poll(async () => (await ask(other.url)).status, { timeout: 20_000 }).toBe(200);
  frozen.thaw();
  const late = await first;
  expect({ status: late.status, body: await late.json() }).toMatchObject({
    status: 503,
    body: { error: "settlement_pending" },
  });
  expect((await scene.handlerRuns()).get(path)).toHaveLength(2);
  expect(await find(purchase)).toMatchObject({ state: "confirmed", isDelivered: true });
});

async function sign(planned: PlannedPurchase | undefined): Promise<Purchase> {
  if (planned === undefined) throw new Error("No purchase is planned like this.");
  const { devnet } = scene;
  const signal = AbortSignal.timeout(20_000);
  return signPurchase({ devnet, planned, sellerUrl: async () => other.url, signal });
}

/** Resolves when the frozen process has lost its reservation. */
async function isReleased(purchase: Purchase): Promise<void> {
  await expect.poll(() => find(purchase), { timeout: 20_000 }).toMatchObject({ state: "released" });
}

async function find({ authorization }: Purchase): Promise<ListedPayment | undefined> {
  const nonce = toLowerHex(authorization.nonce);
  return (await other.listPayments()).find((payment) => toLowerHex(payment.nonce) === nonce);
}

function isTwinOfReport(purchase: PlannedPurchase): boolean {
  return purchase.isTwin && purchase.wire !== "mpp" && isCalmReport(purchase);
}

function isCalmReport(planned: PlannedPurchase): boolean {
  const { interference, hangsUpAfterMs, flow } = planned;
  const isCalm = hangsUpAfterMs === undefined && !failsOnce(planned);
  return isCalm && interference === "none" && flow === "authorization";
}
