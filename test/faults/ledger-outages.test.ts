import { readFile } from "node:fs/promises";
import { backUpDatabase, createTestDatabase, type Devnet } from "@coinslot/devnet";
import { expect, onTestFinished, test } from "vitest";
import type { Bought } from "./buyer.ts";
import { type ChainRecord, readChain } from "./chain-record.ts";
import { createFileLogger } from "./file-logger.ts";
import { awaitRest } from "./ledger-at-rest.ts";
import { fullDisk, mayMount, readOnlyDatabase, smallDisk } from "./ledger-outages.ts";
import { startLiveChain } from "./live-chain.ts";
import { startLoad } from "./load.ts";
import { findViolations } from "./oracle.ts";
import { type PlannedPurchase, planPurchases } from "./purchase.ts";
import { fundPayers, openScene } from "./scene.ts";
import { createRandom } from "./seeded-random.ts";
import { signPurchase } from "./sign-purchase.ts";
import { startWorker, type WorkerProcess } from "./worker-process.ts";

/** Purchases before the outage, until its end where buyers go on through it, and in all. */
const [early, late, all] = [15, 35, 60];
const concurrency = 10;
const patience = { timeout: 20_000, interval: 100 };

/** A live chain with buyers, and sellers on one ledger. */
async function open(
  engine: "sqlite" | "postgres",
  {
    sellerCount = 1,
    isOnSmallDisk = false,
  }: { sellerCount?: number; isOnSmallDisk?: boolean } = {},
) {
  const random = createRandom(`an outage on ${engine}`);
  const database = engine === "postgres" ? await createTestDatabase() : undefined;
  onTestFinished(() => database?.drop());
  const disk = database && isOnSmallDisk ? await smallDisk(database) : undefined;
  onTestFinished(() => disk?.unmount());
  const scene = await openScene({ random, postgresUrl: database?.url, faultShare: 0 });
  onTestFinished(() => scene.close({ keepsFiles: false }));
  const { devnet, program } = scene;
  const purchases = planPurchases({ count: all, random, now: Date.now() });
  await fundPayers(devnet, purchases);
  await devnet.setAutomine(false);
  const chain = startLiveChain({ devnet, random });
  onTestFinished(() => chain.stop());
  const sellers = await Promise.all(
    Array.from({ length: sellerCount }, () => startWorker(program)),
  );
  onTestFinished(async () => void (await Promise.all(sellers.map((seller) => seller.kill()))));
  const [seller] = sellers;
  if (seller === undefined) throw new Error("Nobody sells.");
  const load = startLoad({
    devnet,
    purchases,
    concurrency,
    chain,
    sellerUrl: async () => random.pick([seller, ...sellers]).url,
    signal: AbortSignal.timeout(60_000),
    log: createFileLogger(program.options.logFile),
  });
  return { scene, chain, purchases, seller, sellers, load, disk };
}

const outages = [
  { engine: "sqlite", what: "has a full disk", isOnSmallDisk: false },
  { engine: "postgres", what: "is read-only", isOnSmallDisk: false },
  ...(mayMount
    ? ([{ engine: "postgres", what: "has a full disk", isOnSmallDisk: true }] as const)
    : []),
] as const;

test.each(outages)(
  "a seller whose ledger on $engine $what for a while refuses payments in words, and goes on",
  { timeout: 120_000 },
  async ({ engine, isOnSmallDisk }) => {
    const { scene, chain, purchases, seller, load, disk } = await open(engine, { isOnSmallDisk });
    const { ledger: place, logFile } = scene.program.options;
    const outage =
      disk ?? (engine === "sqlite" ? fullDisk(seller, place) : readOnlyDatabase(place));
    load.allow(early);
    await load.begun(early);
    await outage.begin();
    load.allow(all);
    await expect
      .poll(() => readinessOf(seller), patience)
      .toEqual({
        status: 503,
        body: { obstacles: [expect.stringMatching(/is full or fails|takes no writes/)] },
      });
    // PostgreSQL finds room for some writes on the pages that it has.
    if (disk === undefined) await expectRefusal(scene.devnet, seller, purchases.at(-1));
    await outage.end();
    await expect
      .poll(() => readinessOf(seller), patience)
      .toEqual({ status: 200, body: { obstacles: [] } });

    const bought = await load.done;
    chain.calm();
    const ledger = await awaitRest(seller);
    await chain.stop();
    const violations = findViolations({
      chain: await readChain(scene.devnet),
      ledger: ledger.map((payment) => ({ ...payment, isFinal: true })),
      bought,
      runs: await scene.handlerRuns(),
      replaced: chain.replaced,
      broadcasts: scene.proxy.broadcasts(),
    });
    expect(violations).toEqual([]);
    // However many requests there were: each message once a minute.
    const faults = countFaults(await readFile(logFile, "utf8"));
    expect([...faults].filter(([, count]) => count > 1)).toEqual([]);
    expect([...faults.keys()]).toContainEqual(
      expect.stringMatching(/^the ledger cannot be written: .* (Its disk|Its server)/),
    );
  },
);

test("two sellers whose ledger is restored under load take no money twice, serve nothing unpaid, and go on", {
  timeout: 120_000,
}, async () => {
  const { scene, chain, seller, sellers, load } = await open("postgres", { sellerCount: 2 });
  const { ledger: place, logFile } = scene.program.options;
  load.allow(early);
  await load.begun(early);
  const backup = await backUpDatabase(place);
  load.allow(late);
  await load.begun(late);
  await backup.restore();
  await expect
    .poll(
      async () => countLines(await readFile(logFile, "utf8"), "the ledger was opened anew"),
      patience,
    )
    .toBe(sellers.length);
  load.allow(all);
  const bought = await load.done;
  chain.calm();
  await awaitRest(seller);
  await chain.stop();
  const theft = findTheft(bought, await readChain(scene.devnet), chain.replaced);
  expect(theft).toEqual([]);
  // The money of the lost time is known to the token alone. Later buyers notice nothing.
  const later = bought.filter(
    ({ purchase }) => purchase.number >= late && purchase.interference === "none",
  );
  expect(later.length).toBeGreaterThan(0);
  expect(later.filter(({ outcome }) => outcome.kind !== "served")).toEqual([]);
});

async function expectRefusal(
  devnet: Devnet,
  { url }: WorkerProcess,
  planned: PlannedPurchase | undefined,
) {
  if (planned === undefined) throw new Error("There are no purchases.");
  const signal = AbortSignal.timeout(patience.timeout);
  const sellerUrl = async () => url;
  const { path, headers } = await signPurchase({ devnet, planned, sellerUrl, signal });
  const refused = await fetch(`${url}${path}`, { headers });
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "2"]);
  expect(await refused.json()).toMatchObject({ error: "facilitator_unavailable" });
}

async function readinessOf({ url }: WorkerProcess): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${url}/readyz`);
  return { status: response.status, body: await response.json() };
}

/** Lines about faults of the ledger, by message. */
function countFaults(log: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of log.split("\n")) {
    const message = /"level":"(?:warn|error)","message":"([^"]*)"/.exec(line)?.[1];
    const isOurs = line.includes("DatabaseError") && message !== "the middleware reported a fault";
    if (message !== undefined && isOurs) counts.set(message, (counts.get(message) ?? 0) + 1);
  }
  return counts;
}

function countLines(log: string, message: string): number {
  return log.split(`"message":"${message}"`).length - 1;
}

/**
 * Damage that no restore may cause: money that moved twice, or for nothing, and unpaid content
 * that went out.
 */
function findTheft(
  bought: readonly Bought[],
  chain: ChainRecord,
  replaced: ReadonlySet<string>,
): string[] {
  const theft: string[] = [];
  const paid = new Map<string, number>();
  for (const { purchase, outcome, deliveries } of bought) {
    const { number, payer } = purchase;
    const { length } = chain.executionsOf(purchase);
    paid.set(payer.address, (paid.get(payer.address) ?? 0) + length);
    if (length > 1) theft.push(`purchase ${number} was paid ${length} times`);
    // Served when included: a reorganisation may let a payer take its money back.
    const isServed = outcome.kind === "served" && !replaced.has(outcome.transaction);
    if (isServed && length === 0) theft.push(`purchase ${number} was not paid`);
    if (outcome.kind === "gave up") theft.push(`purchase ${number} had no answer: ${outcome.why}`);
    if (deliveries > (purchase.isTwin ? 2 : 1)) theft.push(`purchase ${number} went out again`);
  }
  for (const { purchase } of bought) {
    const { address } = purchase.payer;
    const moved = chain.transfersToSeller(address);
    if (moved !== paid.get(address))
      theft.push(`${address} paid ${moved}, for ${paid.get(address)}`);
  }
  return theft;
}
