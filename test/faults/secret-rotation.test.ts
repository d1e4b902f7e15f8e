import { createTestDatabase } from "@coinslot/devnet";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readChain } from "./chain-record.ts";
import { failsOnce, type PlannedPurchase, type Purchase, planPurchases } from "./purchase.ts";
import { fundPayers, openScene, type Scene } from "./scene.ts";
import { createRandom } from "./seeded-random.ts";
import { signPurchase } from "./sign-purchase.ts";
import { startWorker, type WorkerProcess } from "./worker-process.ts";

type Secrets = readonly [current: string, ...others: string[]];

const old = "the-secret-before-the-rotation-0";
const next = "the-secret-after-the-rotation-01";
const patience = { timeout: 60_000, interval: 50 };
/** Programs start here, on a machine that may be busy. */
const startingMs = 240_000;
const buyersAtOnce = 4;
const maxPurchases = 2_000;

/** A seller with the secrets of its start. */
interface Rotated {
  seller: WorkerProcess;
  secrets: Secrets;
}

/** A purchase that was bought: by a challenge of one process, at one. */
interface Bought {
  purchase: Purchase;
  maker: Rotated;
  taker: Rotated;
  body: string;
}

describe("the secret of challenges", () => {
  const random = createRandom("rotation of secrets");
  // A payment has two runs. Here each loses one to a death at most, and none to its handler.
  const planned: PlannedPurchase[] = planPurchases({
    count: maxPurchases,
    random,
    now: Date.now(),
  })
    .filter((each) => !failsOnce(each))
    .map((each) => ({
      ...each,
      wire: "mpp",
      interference: "none",
      flow: "authorization",
      path: `/report/${each.number}`,
      key: each.nonce,
      hasKey: true,
    }));
  /** Purchases that have met a death, and go on. */
  const struck = new Set<PlannedPurchase>();
  let scene: Scene;
  let fleet: Rotated[] = [];
  let dropDatabase: () => Promise<unknown>;

  beforeAll(async () => {
    const { url, drop } = await createTestDatabase();
    dropDatabase = drop;
    scene = await openScene({ random, postgresUrl: url, faultShare: 0 });
    await fundPayers(scene.devnet, planned);
    fleet = await Promise.all([start([old]), start([old])]);
  }, startingMs);

  afterAll(async () => {
    await Promise.all(fleet.map(({ seller }) => seller.kill()));
    await scene?.close({ keepsFiles: false });
    await dropDatabase?.();
  });

  test("is rotated under load, by killed processes: no credential is refused, or paid twice", {
    timeout: startingMs,
  }, async () => {
    const rotation = new AbortController();
    const waiting = [...planned];
    const bought: Bought[] = [];
    const buyers = Promise.all(
      Array.from({ length: buyersAtOnce }, async () => {
        while (!rotation.signal.aborted) {
          const purchase = waiting.shift();
          if (purchase === undefined) throw new Error("There are too few purchases.");
          bought.push(await buy(purchase));
        }
      }),
    );
    const rotating = replaceAll([old, next], { bought })
      .then(() => replaceAll([next, old], { bought }))
      .finally(() => rotation.abort());
    await Promise.all([rotating, buyers]);

    const chain = await readChain(scene.devnet);
    const transfers = bought.map(({ purchase }) => chain.executionsOf(purchase).length);
    expect(transfers).toEqual(bought.map(() => 1));

    const [first] = bought;
    if (first === undefined) throw new Error("Nothing was bought");
    for (const { seller } of fleet) expect(await askAgain(seller, first)).toBe(200);
    await replaceAll([next], { bought: undefined });
    const last = bought.findLast(({ maker }) => maker.secrets[0] === next);
    if (last === undefined) throw new Error("Nothing was bought by the new secret");
    for (const { seller } of fleet) {
      expect(await askAgain(seller, last)).toBe(200);
      expect(await askAgain(seller, first)).toBe(402);
    }
  });

  async function start(secrets: Secrets): Promise<Rotated> {
    const { file, options } = scene.program;
    const [current, ...others] = secrets;
    const challengeSecrets: [string, ...string[]] = [current, ...others];
    return {
      seller: await startWorker({ file, options: { ...options, challengeSecrets } }),
      secrets,
    };
  }

  /**
   * One after the other: the new process takes requests before the old one is killed. Under load,
   * each waits for a purchase with a challenge of either process, paid at either.
   */
  async function replaceAll(
    secrets: Secrets,
    { bought }: { bought: readonly Bought[] | undefined },
  ): Promise<void> {
    for (const index of fleet.keys()) {
      const fresh = await start(secrets);
      await expect.poll(() => struck.size, patience).toBe(0);
      const [gone] = fleet.splice(index, 1, fresh);
      await gone?.seller.kill();
      const pairs = fleet.flatMap((maker) => fleet.map((taker) => ({ maker, taker })));
      for (const pair of bought === undefined ? [] : pairs) {
        await expect.poll(() => bought?.some((each) => isOf(each, pair)), patience).toBe(true);
      }
    }
  }

  function pick(): Rotated {
    const [first, ...others] = fleet;
    if (first === undefined) throw new Error("There is no seller.");
    return random.pick([first, ...others]);
  }

  /** The challenge of one process, paid at any. A process that dies is asked no more. */
  async function buy(purchase: PlannedPurchase): Promise<Bought> {
    let maker = pick();
    const signed = await signPurchase({
      devnet: scene.devnet,
      planned: purchase,
      sellerUrl: async () => {
        maker = pick();
        return maker.seller.url;
      },
      signal: AbortSignal.timeout(patience.timeout),
    });
    let taker = pick();
    let answer: Answer | undefined;
    // Money that has moved, or may move, is never answered with 402.
    await expect
      .poll(async () => {
        taker = pick();
        answer = await ask(taker.seller, signed).catch(() => {
          struck.add(purchase);
          return undefined;
        });
        return answer?.status === 200 || answer?.status === 402;
      }, patience)
      .toBe(true);
    expect(answer).toMatchObject({ status: 200 });
    struck.delete(purchase);
    const { body = "" } = answer ?? {};
    return { purchase: signed, maker, taker, body };
  }
});

function isOf(bought: Bought, { maker, taker }: Pick<Bought, "maker" | "taker">): boolean {
  return bought.maker === maker && bought.taker === taker;
}

interface Answer {
  status: number;
  body: string;
}

async function ask({ url }: WorkerProcess, { path, headers }: Purchase): Promise<Answer> {
  const response = await fetch(`${url}${path}`, { headers });
  return { status: response.status, body: await response.text() };
}

/** The status of another delivery, whose answer is the first one's. */
async function askAgain(seller: WorkerProcess, { purchase, body }: Bought): Promise<number> {
  const answer = await ask(seller, purchase);
  if (answer.status === 200) expect(answer.body).toBe(body);
  return answer.status;
}
