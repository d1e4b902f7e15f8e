import { mkdtemp, rm } from "node:fs/promises";
import { Agent } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Devnet, startDevnet, startPostgres, testUsdt0 } from "@coinslot/devnet";
import { encodePaymentPayload } from "@coinslot/protocol";
import type { Figure } from "../../support/figure.ts";
import { getPaid } from "../../support/get-paid.ts";
import { percentile } from "../../support/measure.ts";
import type { SellerProcess } from "../../support/seller.ts";
import { type SellerFleet, startSellerFleet } from "../../support/seller-fleet.ts";
import { fundPayers, price, signPayments } from "../../support/signed-payments.ts";

const sellerCount = 3;
const buyerCount = 12;
/** Time for which each state lasts: all sellers, and between two replacements. */
const settledMs = 5_000;
/** Pause of a buyer between two purchases: far below what the sellers can do. */
const pauseMs = 50;
const payments = 6_000;

/** One of three sellers after another is replaced while buyers buy. */
export async function rollingRestart(): Promise<Figure[]> {
  const devnet = await startDevnet({ accountCount: 44 });
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  const postgres = await startPostgres();
  let fleet: SellerFleet | undefined;
  try {
    await fundPayers(devnet);
    const { url: ledger } = await postgres.createDatabase();
    fleet = await startSellerFleet({ devnet, folder, ledger, count: sellerCount });
    const before = await takings(devnet);
    const headers = (await signPayments(devnet, payments)).map(encodePaymentPayload);
    const load = startBuyers(fleet.living, headers);
    await sleep(settledMs);
    const calm = load.purchases.splice(0);
    const steps: Step[] = [];
    const begin = (name: string) => steps.push({ name, at: performance.now() });
    for (let index = 0; index < sellerCount; index += 1) {
      begin(`seller ${index + 1} began to stop`);
      await fleet.retireOldest();
      begin(`seller ${index + 1} had stopped`);
      await sleep(settledMs / 5);
      begin(`seller ${sellerCount + index + 1} was started`);
      await fleet.start();
      begin(`seller ${sellerCount + index + 1} listened`);
      await sleep(settledMs / 5);
    }
    const restarting = load.purchases.splice(0);
    const bought = await load.stop();
    const paid = (await takings(devnet)) - before;
    const calmMs = longest(calm)?.tookMs ?? 0;
    const restartingMs = longest(restarting)?.tookMs ?? 0;
    for (const purchase of byDuration(restarting).slice(0, 5)) {
      console.error(describe(purchase, steps));
    }
    return [
      {
        scenario: "rolling restart of 3 sellers: purchases that failed, or were paid and not had",
        ours: { value: load.failed() + Math.abs(Number(paid / price) - bought), unit: "" },
        goal: { of: "ours", atMost: 0 },
      },
      {
        scenario: "rolling restart of 3 sellers: purchases meanwhile",
        ours: {
          value: restarting.length,
          unit: "",
          note: `p99 ${percentile(
            restarting.map(({ tookMs }) => tookMs),
            0.99,
          ).toFixed(0)} ms`,
        },
      },
      {
        scenario: "rolling restart of 3 sellers: longest purchase, beside the longest before",
        ours: { value: restartingMs, unit: "ms", note: `${calmMs.toFixed(0)} ms before` },
        goal: { of: "ours", atMost: 1_000 + calmMs },
      },
    ];
  } finally {
    await fleet?.stop();
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
    await devnet.stop();
  }
}

/** A step of the restart. */
interface Step {
  name: string;
  at: number;
}

interface Purchase {
  startedAt: number;
  tookMs: number;
  /** Time in the attempts that were refused a connection. */
  refusedMs: number;
  attempts: number;
}

const byDuration = (purchases: readonly Purchase[]) =>
  [...purchases].sort((a, b) => b.tookMs - a.tookMs);
const longest = (purchases: readonly Purchase[]) => byDuration(purchases)[0];

/** A purchase's wait, and the step of the restart in which it began and that in which it ended. */
function describe({ startedAt, tookMs, refusedMs, attempts }: Purchase, steps: readonly Step[]) {
  const after = (time: number) => {
    const step = steps.findLast(({ at }) => at <= time);
    return step ? `${(time - step.at).toFixed(0)} ms after ${step.name}` : "before the restart";
  };
  return (
    `${tookMs.toFixed(0)} ms, ${refusedMs.toFixed(0)} of them refused, ${attempts} attempts:` +
    ` from ${after(startedAt)} to ${after(startedAt + tookMs)}`
  );
}

/**
 * Buyers behind a load balancer, which takes a seller out before it stops. One that is refused a
 * connection goes to another seller, with the same payment.
 */
function startBuyers(sellers: readonly SellerProcess[], headers: string[]) {
  const purchases: Purchase[] = [];
  let [failed, bought, turn] = [0, 0, 0];
  let isEnding = false;
  const agent = new Agent({ keepAlive: true, timeout: 2_000 });
  async function buy(): Promise<void> {
    for (;;) {
      const header = headers.pop();
      if (header === undefined || isEnding) return;
      const purchase = { startedAt: performance.now(), tookMs: 0, refusedMs: 0, attempts: 0 };
      try {
        await tryAll(header, purchase);
        bought += 1;
      } catch (error) {
        failed += 1;
        console.error(error);
      }
      purchase.tookMs = performance.now() - purchase.startedAt;
      purchases.push(purchase);
      await sleep(pauseMs);
    }
  }
  async function tryAll(header: string, purchase: Purchase): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      purchase.attempts = attempt;
      const seller = sellers[turn++ % sellers.length];
      try {
        if (seller === undefined) throw new Error("There is no seller.");
        return await getPaid({ port: seller.port, agent, header });
      } catch (error) {
        const isRefused = error instanceof Error && "code" in error;
        if (!isRefused || attempt === sellerCount) throw error;
        purchase.refusedMs = performance.now() - purchase.startedAt;
      }
    }
  }
  const buyers = Array.from({ length: buyerCount }, buy);
  return {
    purchases,
    failed: () => failed,
    async stop(): Promise<number> {
      isEnding = true;
      await Promise.all(buyers);
      agent.destroy();
      return bought;
    },
  };
}

function takings({ client, token, accounts }: Devnet): Promise<bigint> {
  return client.readContract({
    address: token,
    abi: testUsdt0.abi,
    functionName: "balanceOf",
    args: [accounts.seller.address],
  });
}
