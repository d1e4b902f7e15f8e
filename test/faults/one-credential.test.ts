import { createTestDatabase } from "@coinslot/devnet";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readChain } from "./chain-record.ts";
import { type PlannedPurchase, type Purchase, planPurchases } from "./purchase.ts";
import { fundPayers, openScene, type Scene } from "./scene.ts";
import { createRandom } from "./seeded-random.ts";
import { signPurchase } from "./sign-purchase.ts";
import { startWorker, type WorkerProcess } from "./worker-process.ts";

const patience = { timeout: 60_000, interval: 100 };
/** Programs start here, on a machine that may be busy. */
const startingMs = 180_000;

/** Purchases by MPP of reports whose handlers do not fail, without a key. */
function planCalm(random: ReturnType<typeof createRandom>): PlannedPurchase[] {
  return planPurchases({ count: 4, random, now: Date.now() }).map((planned) => ({
    ...planned,
    wire: "mpp",
    interference: "none",
    flow: "authorization",
    path: `/report/${planned.number}`,
    key: undefined,
    hasKey: false,
  }));
}

async function sign(
  scene: Scene,
  { url }: WorkerProcess,
  planned: PlannedPurchase | undefined,
): Promise<Purchase> {
  if (planned === undefined) throw new Error("There are too few purchases.");
  const signal = AbortSignal.timeout(patience.timeout);
  return signPurchase({ devnet: scene.devnet, planned, sellerUrl: async () => url, signal });
}

async function statusOf(
  { url }: WorkerProcess,
  { path }: Purchase,
  headers: Readonly<Record<string, string>>,
): Promise<number> {
  const response = await fetch(`${url}${path}`, { headers });
  await response.arrayBuffer();
  return response.status;
}

async function transfersOf({ devnet }: Scene, purchase: Purchase): Promise<number> {
  return (await readChain(devnet)).executionsOf(purchase).length;
}

describe("two processes on one PostgreSQL", () => {
  const random = createRandom("one credential at two processes");
  const purchases = planCalm(random);
  let scene: Scene;
  let one: WorkerProcess;
  let other: WorkerProcess;
  let dropDatabase: () => Promise<unknown>;

  beforeAll(async () => {
    const { url, drop } = await createTestDatabase();
    dropDatabase = drop;
    scene = await openScene({ random, postgresUrl: url, faultShare: 0 });
    await fundPayers(scene.devnet, purchases);
    [one, other] = await Promise.all([startWorker(scene.program), startWorker(scene.program)]);
  }, startingMs);

  afterAll(async () => {
    await Promise.all([one?.kill(), other?.kill()]);
    await scene?.close({ keepsFiles: false });
    await dropDatabase?.();
  });

  test("run, settle and deliver a credential once that both have ten times at once", async () => {
    const purchase = await sign(scene, one, purchases[0]);
    const statuses = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        statusOf(index % 2 === 0 ? one : other, purchase, purchase.headers),
      ),
    );
    expectOneDelivery(statuses);
    expect((await scene.handlerRuns()).get(purchase.path)).toHaveLength(1);
    expect(await transfersOf(scene, purchase)).toBe(1);
  });

  test.each([
    [1, ["mpp", "x402"]],
    [2, ["x402", "mpp"]],
  ] as const)(
    "deliver an authorization once that both have at once, by two wires: %i, %s",
    async (index, order) => {
      const purchase = await sign(scene, one, purchases[index]);
      const headers = { mpp: purchase.headers, x402: purchase.strangerHeaders };
      const sellers = [one, other];
      const statuses = await Promise.all(
        order.map((wire, at) => statusOf(sellers[at] ?? one, purchase, headers[wire])),
      );
      expectOneDelivery(statuses);
      expect((await scene.handlerRuns()).get(purchase.path)).toHaveLength(1);
      expect(await transfersOf(scene, purchase)).toBe(1);
    },
  );

  function expectOneDelivery(statuses: number[]): void {
    const [first, ...others] = statuses.sort();
    expect(first).toBe(200);
    expect(others.filter((status) => status !== 402 && status !== 409)).toEqual([]);
  }
});

describe("a process on SQLite, killed and started again", () => {
  const random = createRandom("one credential after a death");
  const purchases = planCalm(random);
  let scene: Scene;
  let seller: WorkerProcess;

  beforeAll(async () => {
    scene = await openScene({ random, faultShare: 0 });
    await fundPayers(scene.devnet, purchases);
    seller = await startWorker(scene.program);
  }, startingMs);

  afterAll(async () => {
    await seller?.kill();
    await scene?.close({ keepsFiles: false });
  });

  test.each([
    // The signed transaction has left nowhere yet, so no stranger has the authorization.
    { point: "queued", isPublic: false, index: 0 },
    { point: "broadcast", isPublic: true, index: 1 },
    { point: "settled", isPublic: true, index: 2 },
  ] as const)(
    "takes the same credential after its death at $point, moves its money once, and gives a stranger nothing for it",
    { timeout: startingMs },
    async ({ point, isPublic, index }) => {
      const purchase = await sign(scene, seller, purchases[index]);
      seller.killAt(point, 1);
      await expect(statusOf(seller, purchase, purchase.headers)).rejects.toThrow();
      await seller.gone;
      seller = await startWorker(scene.program);

      const toStranger: number[] = [];
      const askAsStranger = async () =>
        void toStranger.push(await statusOf(seller, purchase, purchase.strangerHeaders));
      await expect
        .poll(async () => {
          if (isPublic) await askAsStranger();
          return statusOf(seller, purchase, purchase.headers);
        }, patience)
        .toBe(200);
      await askAsStranger();
      expect(toStranger.filter((status) => status < 400)).toEqual([]);
      expect(await statusOf(seller, purchase, purchase.headers)).toBe(402);
      expect((await scene.handlerRuns()).get(purchase.path)).toHaveLength(2);
      expect(await transfersOf(scene, purchase)).toBe(1);
    },
  );
});
