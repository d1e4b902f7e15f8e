import { mkdtemp, rm } from "node:fs/promises";
import { Agent } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { bundleProgram } from "@coinslot/devnet/bundle-program";
import { encodePaymentPayload, headerName } from "@coinslot/protocol";
import autocannon from "autocannon";
import { answerChallenge, fetchChallenge } from "../support/answer-challenge.ts";
import type { Figure } from "../support/figure.ts";
import { getPaid } from "../support/get-paid.ts";
import { percentile, timeConcurrently } from "../support/measure.ts";
import { type SellerProcess, startSellerProcess } from "../support/seller.ts";
import { fundPayers, requirementsOf, signPayments } from "../support/signed-payments.ts";
import { untilAtRest } from "../support/until-at-rest.ts";

const turns = 8;
const paidPerTurn = 512;
const unpaidPerTurn = 8_000;
const atOnce = 128;
const connections = 32;

/** The wires beside one another: processor time of their sellers, in paired turns. */
export async function wires(): Promise<Figure[]> {
  const devnet = await startDevnet({ accountCount: 40 });
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  try {
    await fundPayers(devnet);
    const source = new URL("../support/seller-process.ts", import.meta.url);
    const program = await bundleProgram(source, folder, { minifies: true });
    const start = (kind: "ours" | "bare", mpp: boolean) =>
      startSellerProcess(program, {
        kind,
        mpp,
        rpcUrl: devnet.rpcUrl,
        chainId: devnet.chainId,
        relayer: { privateKey: devnet.accounts.relayer.privateKey },
        ledger: `sqlite:${join(folder, `ledger-${kind}-${mpp}.db`)}`,
        requirements: requirementsOf(devnet),
      });
    return [await paid(devnet, await start("ours", true)), ...(await unpaid(start))];
  } finally {
    await rm(folder, { recursive: true, force: true });
    await devnet.stop();
  }
}

/** Paid GETs at one seller. Turns of the two wires change places, since a chain slows down. */
async function paid(devnet: Devnet, seller: SellerProcess): Promise<Figure> {
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce, timeout: 2_000 });
  const count = (turns + 1) * paidPerTurn;
  const url = `http://127.0.0.1:${seller.port}/weather`;
  try {
    const version2 = (await signPayments(devnet, count)).map(encodePaymentPayload);
    const mpp: string[] = [];
    for (let index = 0; index < count; index += 1) {
      mpp.push(await answerChallenge(devnet, await fetchChallenge(url), index));
    }
    const jobs = [
      { jobs: version2, headerName: headerName.paymentSignature, ms: [] as number[] },
      { jobs: mpp, headerName: headerName.authorization, ms: [] as number[] },
    ] as const;
    for (let turn = 0; turn <= turns; turn += 1) {
      for (const wire of turn % 2 === 0 ? jobs : jobs.toReversed()) {
        await untilAtRest(devnet);
        const took = await processorMs(seller, paidPerTurn, () =>
          timeConcurrently(wire.jobs.splice(0, paidPerTurn), atOnce, (header) =>
            getPaid({ port: seller.port, agent, header, headerName: wire.headerName }),
          ),
        );
        // The first turn warms up.
        if (turn > 0) wire.ms.push(took);
      }
    }
    const [{ ms: theirs }, { ms: ours }] = jobs;
    const ratios = ours.map((value, turn) => value / (theirs[turn] ?? Number.NaN));
    return {
      scenario: "processor time of a paid GET by MPP, beside version 2",
      ours: { value: percentile(ours, 0.5), unit: "ms" },
      ratio: {
        value: percentile(ratios, 0.5),
        to: `${percentile(theirs, 0.5).toFixed(3)} ms by version 2`,
        turns: ratios,
      },
      goal: { of: "ratio", atMost: 1.05 },
    };
  } finally {
    agent.destroy();
    await seller.stop();
  }
}

/** Unpaid GETs beside a bare route: with both offers of x402, and with the challenge of MPP, too. */
async function unpaid(
  start: (kind: "ours" | "bare", mpp: boolean) => Promise<SellerProcess>,
): Promise<Figure[]> {
  const sellers = [
    await start("bare", false),
    await start("ours", false),
    await start("ours", true),
  ];
  try {
    const times = sellers.map((): number[] => []);
    for (let turn = 0; turn <= turns; turn += 1) {
      for (const [index, seller] of sellers.entries()) {
        const url = `http://127.0.0.1:${seller.port}/weather`;
        const took = await processorMs(seller, unpaidPerTurn, () =>
          autocannon({ url, connections, amount: unpaidPerTurn }),
        );
        if (turn > 0) times[index]?.push(took);
      }
    }
    const [bare = [], x402 = [], all = []] = times;
    return [figure("x402 alone", x402), figure("all three offers", all)];

    function figure(name: string, ours: readonly number[]): Figure {
      const ratios = ours.map((value, turn) => (bare[turn] ?? Number.NaN) / value);
      return {
        scenario: `processor time of an unpaid GET, ${name}, as rate beside a bare route`,
        ours: { value: percentile(ours, 0.5), unit: "ms" },
        ratio: {
          value: percentile(ratios, 0.5),
          to: `${percentile(bare, 0.5).toFixed(4)} ms bare`,
          turns: ratios,
        },
        goal: { of: "ratio", atLeast: 0.9 },
      };
    }
  } finally {
    for (const seller of sellers) await seller.stop();
  }
}

/** Processor time of a seller for each of this many requests, in milliseconds. */
async function processorMs(
  seller: SellerProcess,
  count: number,
  run: () => PromiseLike<unknown>,
): Promise<number> {
  const before = (await seller.usage()).processorSeconds;
  await run();
  return (1000 * ((await seller.usage()).processorSeconds - before)) / count;
}
