import { Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Devnet } from "@coinslot/devnet";
import { encodePaymentPayload } from "@coinslot/protocol";
import type { ConsolePage } from "../../support/console-page.ts";
import type { Figure } from "../../support/figure.ts";
import { getPaid } from "../../support/get-paid.ts";
import { percentile, timeConcurrently } from "../../support/measure.ts";
import type { SellerProcess } from "../../support/seller.ts";
import { signPayments } from "../../support/signed-payments.ts";
import { untilAtRest } from "../../support/until-at-rest.ts";

const pairs = Number(process.env.BENCH_PAIRS ?? 6);
/** Enough for several reads of an open page. */
const paidPerTurn = Number(process.env.BENCH_PAID ?? 4_096);
const atOnce = 128;
/** Payments one by one, a second apart. */
const slowSeconds = 20;

interface Shop {
  devnet: Devnet;
  seller: SellerProcess;
  page: ConsolePage;
}

/** Paid GETs at a seller without and with an open console, in turns: its processor time. */
export async function payBesideConsole(shop: Shop): Promise<Figure[]> {
  const { devnet, seller, page } = shop;
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce, timeout: 2_000 });
  const pay = async () => {
    const jobs = (await signPayments(devnet, paidPerTurn)).map(encodePaymentPayload);
    await untilAtRest(devnet);
    return processorMs(seller, () =>
      timeConcurrently(jobs, atOnce, (header) => getPaid({ port: seller.port, agent, header })),
    );
  };
  const alone: number[] = [];
  const beside: number[] = [];
  const seconds: number[] = [];
  let reads = 0;
  try {
    await pay();
    for (let pair = 0; pair < pairs; pair += 1) {
      const turns = [
        async () => void alone.push((await pay()).processor),
        async () => {
          const today = await page.watchToday();
          const before = today.reads();
          const took = await pay();
          reads += today.reads() - before;
          today.close();
          beside.push(took.processor);
          seconds.push(took.wall / 1_000);
        },
      ];
      for (const turn of pair % 2 === 0 ? turns : turns.toReversed()) await turn();
    }
    const ratios = beside.map((value, pair) => value / (alone[pair] ?? Number.NaN));
    const total = seconds.reduce((sum, each) => sum + each, 0);
    return [
      {
        scenario: "paid GET beside an open console, processor time",
        ours: {
          value: percentile(beside, 0.5) / paidPerTurn,
          unit: "ms",
          note: `Today read ${reads} times in ${total.toFixed(0)} s`,
        },
        ratio: { value: percentile(ratios, 0.5), to: "without", turns: ratios },
        goal: { of: "ratio", atMost: 1.02 },
      },
      await shareOfCore(shop),
    ];
  } finally {
    agent.destroy();
  }
}

/**
 * The same page beside one payment a second, each of which is a change, and the same payments
 * without it: the processor time that it takes, as a share of one core. It is what the console
 * takes of a busy seller, without the noise of many payments.
 */
async function shareOfCore({ devnet, seller, page }: Shop): Promise<Figure> {
  const jobs = (await signPayments(devnet, 2 * slowSeconds)).map(encodePaymentPayload);
  const agent = new Agent({ keepAlive: true, timeout: 2_000 });
  const payEachSecond = () =>
    processorMs(seller, async () => {
      for (const header of jobs.splice(0, slowSeconds)) {
        await getPaid({ port: seller.port, agent, header });
        await sleep(1_000);
      }
    });
  try {
    await untilAtRest(devnet);
    const without = await payEachSecond();
    const today = await page.watchToday();
    const before = today.reads();
    const beside = await payEachSecond();
    const reads = today.reads() - before;
    today.close();
    const share = beside.processor / beside.wall - without.processor / without.wall;
    return {
      scenario: "an open console beside a payment a second, of a core",
      ours: {
        value: 100 * share,
        unit: "%",
        note: `Today read ${reads} times in ${(beside.wall / 1_000).toFixed(0)} s`,
      },
      goal: { of: "ours", atMost: 2 },
    };
  } finally {
    agent.destroy();
  }
}

async function processorMs(
  seller: SellerProcess,
  work: () => Promise<unknown>,
): Promise<{ processor: number; wall: number }> {
  const before = (await seller.usage()).processorSeconds;
  const started = performance.now();
  await work();
  const wall = performance.now() - started;
  return { processor: 1_000 * ((await seller.usage()).processorSeconds - before), wall };
}
