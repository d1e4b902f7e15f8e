import { mkdtemp, rm } from "node:fs/promises";
import { Agent } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { bundleProgram } from "@coinslot/devnet/bundle-program";
import { encodePaymentPayload, headerName } from "@coinslot/protocol";
import autocannon from "autocannon";
import { answerChallenge, fetchChallenge } from "../support/answer-challenge.ts";
import type { Figure } from "../support/figure.ts";
import { getPaid } from "../support/get-paid.ts";
import { timeConcurrently } from "../support/measure.ts";
import { comparePairs, takePairedTurns } from "../support/paired-turns.ts";
import { type SellerProcess, startSellerProcess } from "../support/seller.ts";
import { fundPayers, requirementsOf, signPayments } from "../support/signed-payments.ts";
import { untilAtRest } from "../support/until-at-rest.ts";

const turns = Number(process.env.BENCH_PAIRS ?? 40);
const warmUp = 1_024;
const paidPerTurn = 192;
/** About a second: shorter turns measure how code, caches and connections get warm again. */
const unpaidPerTurn = 10_000;
const atOnce = 128;
const connections = 32;
/** Another checkout of this repository, such as that of an earlier release. */
const { BENCH_BEFORE: before } = process.env;

/** The common parts of all sellers of a run. */
interface Place {
  devnet: Devnet;
  folder: string;
  program: string;
}

/** The wires beside one another: processor time of their sellers, in many short turns. */
export async function wires(): Promise<Figure[]> {
  const devnet = await startDevnet({ accountCount: 40 });
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  try {
    await fundPayers(devnet);
    const source = new URL("../support/seller-process.ts", import.meta.url);
    const program = await bundleProgram(source, join(folder, "own"), { minifies: true });
    const place = { devnet, folder, program };
    return [...(await paid(place)), ...(await unpaid(place))];
  } finally {
    await rm(folder, { recursive: true, force: true });
    await devnet.stop();
  }
}

/** Payments of one wire at one seller. */
interface Sale {
  seller: SellerProcess;
  /** Values of the header that pays. */
  payments: string[];
  headerName: string;
}

/**
 * Paid GETs by version 2 and by MPP at one seller. Those by version 2 at the seller of another
 * checkout, in `BENCH_BEFORE`.
 */
async function paid(place: Place): Promise<Figure[]> {
  const { devnet } = place;
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce, timeout: 2_000 });
  const sellers: SellerProcess[] = [];
  try {
    const ours = await startSeller(place, "ours", { mpp: true });
    sellers.push(ours);
    const sales = [await byVersion2(devnet, ours), await byMpp(devnet, ours)];
    if (before !== undefined) {
      const earlier = await startEarlier(place, before);
      sellers.push(earlier);
      sales.push(await byVersion2(devnet, earlier));
    }
    const take = ({ seller, payments, headerName }: Sale, amount: number) =>
      processorMs(seller, amount, async () => {
        await timeConcurrently(payments.splice(0, amount), atOnce, (header) =>
          getPaid({ port: seller.port, agent, header, headerName }),
        );
        // Its late blocks are of this turn, and not of the next one.
        await untilAtRest(devnet);
      });
    for (const sale of sales) await take(sale, warmUp);
    const [version2 = [], mpp = [], earlier] = await takePairedTurns(sales, turns, (sale) =>
      take(sale, paidPerTurn),
    );
    return [
      compare("processor time of a paid GET by MPP, beside version 2", mpp, {
        beside: version2,
        name: "by version 2",
        atMost: 1.05,
      }),
      ...(earlier === undefined
        ? []
        : [
            compare("processor time of a paid GET by version 2, beside an earlier one", version2, {
              beside: earlier,
              name: "before",
              atMost: 1.13,
            }),
          ]),
    ];
  } finally {
    agent.destroy();
    for (const seller of sellers) await seller.stop();
  }
}

const paidCount = warmUp + turns * paidPerTurn;

async function byVersion2(devnet: Devnet, seller: SellerProcess): Promise<Sale> {
  const payments = (await signPayments(devnet, paidCount)).map(encodePaymentPayload);
  return { seller, payments, headerName: headerName.paymentSignature };
}

async function byMpp(devnet: Devnet, seller: SellerProcess): Promise<Sale> {
  const url = `http://127.0.0.1:${seller.port}/weather`;
  const payments: string[] = [];
  for (let index = 0; index < paidCount; index += 1) {
    payments.push(await answerChallenge(devnet, await fetchChallenge(url), index));
  }
  return { seller, payments, headerName: headerName.authorization };
}

/**
 * Unpaid GETs beside a bare route: with both offers of x402, and with the challenge of MPP, too.
 */
async function unpaid(place: Place): Promise<Figure[]> {
  const sellers: SellerProcess[] = [];
  try {
    sellers.push(await startSeller(place, "bare", { mpp: false }));
    for (const mpp of [false, true]) sellers.push(await startSeller(place, "ours", { mpp }));
    const take = (seller: SellerProcess, amount: number) =>
      processorMs(seller, amount, () =>
        autocannon({ url: `http://127.0.0.1:${seller.port}/weather`, connections, amount }),
      );
    for (const seller of sellers) await take(seller, 2 * unpaidPerTurn);
    const [bare = [], x402 = [], all = []] = await takePairedTurns(sellers, turns, (seller) =>
      take(seller, unpaidPerTurn),
    );
    return [asRate("x402 alone", x402), asRate("all three offers", all)];

    function asRate(name: string, times: readonly number[]): Figure {
      const { ours, theirs, ratio, spread } = comparePairs(bare, times);
      return {
        scenario: `processor time of an unpaid GET, ${name}, as rate beside a bare route`,
        ours: { value: theirs, unit: "ms", note: spread },
        ratio: { value: ratio, to: `${ours.toFixed(4)} ms bare` },
        goal: { of: "ratio", atLeast: 0.9 },
      };
    }
  } finally {
    for (const seller of sellers) await seller.stop();
  }
}

function compare(
  scenario: string,
  times: readonly number[],
  { beside, name, atMost }: { beside: readonly number[]; name: string; atMost: number },
): Figure {
  const { ours, theirs, ratio, spread } = comparePairs(times, beside);
  return {
    scenario,
    ours: { value: ours, unit: "ms", note: spread },
    ratio: { value: ratio, to: `${theirs.toFixed(3)} ms ${name}` },
    goal: { of: "ratio", atMost },
  };
}

function startSeller(
  { devnet, folder, program }: Place,
  kind: "ours" | "bare",
  { mpp }: { mpp: boolean },
): Promise<SellerProcess> {
  return startSellerProcess(program, {
    kind,
    mpp,
    rpcUrl: devnet.rpcUrl,
    chainId: devnet.chainId,
    relayer: { privateKey: devnet.accounts.relayer.privateKey },
    ledger: `sqlite:${join(folder, `ledger-${kind}-${mpp}.db`)}`,
    requirements: requirementsOf(devnet),
  });
}

/** The seller of another checkout, with a relayer of its own. */
async function startEarlier({ devnet, folder }: Place, checkout: string): Promise<SellerProcess> {
  const source = pathToFileURL(join(checkout, "bench/support/seller-process.ts"));
  const program = await bundleProgram(source, join(folder, "before"), { minifies: true });
  const { privateKey } = devnet.accounts.deployer;
  return startSellerProcess(program, {
    kind: "ours",
    rpcUrl: devnet.rpcUrl,
    chainId: devnet.chainId,
    relayer: { privateKey },
    // The relayer's key in the options of 654c325.
    ...{ privateKey },
    ledger: `sqlite:${join(folder, "ledger-before.db")}`,
    requirements: requirementsOf(devnet),
  });
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
