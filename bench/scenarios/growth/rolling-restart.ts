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
    const calm = load.times.splice(0);
    for (let index = 0; index < sellerCount; index += 1) {
      await fleet.retireOldest();
      await sleep(settledMs / 5);
      await fleet.start();
      await sleep(settledMs / 5);
    }
    const restarting = load.times.splice(0);
    const bought = await load.stop();
    const paid = (await takings(devnet)) - before;
    const longest = (times: readonly number[]) => Math.max(0, ...times);
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
          note: `p99 ${percentile(restarting, 0.99).toFixed(0)} ms`,
        },
      },
      {
        scenario: "rolling restart of 3 sellers: longest purchase, beside the longest before",
        ours: {
          value: longest(restarting),
          unit: "ms",
          note: `${longest(calm).toFixed(0)} ms before`,
        },
        goal: { of: "ours", atMost: 1_000 + longest(calm) },
      },
    ];
  } finally {
    await fleet?.stop();
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
    await devnet.stop();
  }
}

/**
 * Buyers behind a load balancer, which takes a seller out before it stops. One that is refused a
 * connection goes to another seller, with the same payment.
 */
function startBuyers(sellers: readonly SellerProcess[], headers: string[]) {
  const times: number[] = [];
  let [failed, bought, turn] = [0, 0, 0];
  let isEnding = false;
  const agent = new Agent({ keepAlive: true, timeout: 2_000 });
  async function buy(): Promise<void> {
    for (;;) {
      const header = headers.pop();
      if (header === undefined || isEnding) return;
      const startedAt = performance.now();
      try {
        await tryAll(header);
        bought += 1;
      } catch (error) {
        failed += 1;
        console.error(error);
      }
      times.push(performance.now() - startedAt);
      await sleep(pauseMs);
    }
  }
  async function tryAll(header: string): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const seller = sellers[turn++ % sellers.length];
      try {
        if (seller === undefined) throw new Error("There is no seller.");
        return await getPaid({ port: seller.port, agent, header });
      } catch (error) {
        const isRefused = error instanceof Error && "code" in error;
        if (!isRefused || attempt === sellerCount) throw error;
      }
    }
  }
  const buyers = Array.from({ length: buyerCount }, buy);
  return {
    times,
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
