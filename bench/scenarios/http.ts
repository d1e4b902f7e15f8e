import { mkdtemp, rm } from "node:fs/promises";
import { Agent } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { bundleProgram } from "@coinslot/devnet/bundle-program";
import { encodePaymentPayload } from "@coinslot/protocol";
import autocannon from "autocannon";
import type { Figure } from "../support/figure.ts";
import { getPaid } from "../support/get-paid.ts";
import { percentile, timeEach } from "../support/measure.ts";
import { mineEverySecond } from "../support/mine-every-second.ts";
import { type SellerProcess, startSellerProcess } from "../support/seller.ts";
import { fundPayers, requirementsOf, signPayments } from "../support/signed-payments.ts";
import { type Side, takeTurns, turns } from "../support/take-turns.ts";

/** Paid and unpaid requests over HTTP, the seller in a process of its own. */
export async function http(): Promise<Figure[]> {
  const devnet = await startDevnet({ accountCount: 40 });
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  try {
    await fundPayers(devnet);
    const source = new URL("../support/seller-process.ts", import.meta.url);
    const place = {
      devnet,
      folder,
      program: await bundleProgram(source, folder, { minifies: true }),
    };
    return [...(await paid(place)), await unpaid(place)];
  } finally {
    await rm(folder, { recursive: true, force: true });
    await devnet.stop();
  }
}

/** The common parts of all sellers of a run. */
interface Place {
  devnet: Devnet;
  folder: string;
  program: string;
}

async function paid(place: Place): Promise<Figure[]> {
  const ours = await startSale(place, "ours", { warmUp: 2048, perTurn: 4096 });
  const reference = await startSale(place, "reference", { warmUp: 256, perTurn: 512 });
  try {
    const [ourTime = 0, theirTime = 0] = await timeAlone([ours, reference]);
    const rates = await takeTurns(place.devnet, {
      ours: ours.side,
      reference: { ...reference.side, beside: () => mineEverySecond(place.devnet) },
    });
    const [ourMemory, theirMemory] = [
      (await ours.usage()).memory,
      (await reference.usage()).memory,
    ];
    return [
      {
        scenario: "paid GET, 128 at once",
        ours: { value: rates.ours, unit: "/s" },
        reference: { value: rates.reference, unit: "/s" },
        ratio: rates.ratio,
        goal: { of: "ratio", atLeast: 10 },
      },
      {
        scenario: "processor time of the seller for a paid GET, 128 at once",
        ours: { value: rates.processorMs.ours, unit: "ms" },
        reference: { value: rates.processorMs.reference, unit: "ms" },
        ratio: { value: rates.processorMs.ours / rates.processorMs.reference },
        goal: { of: "ours", atMost: 0.8 },
      },
      {
        scenario: "paid GET, one at a time, p50",
        ours: { value: ourTime, unit: "ms" },
        reference: { value: theirTime, unit: "ms" },
        ratio: { value: ourTime / theirTime },
        goal: { of: "ratio", atMost: 0.5 },
      },
      {
        scenario: "memory of the seller under this load",
        ours: { value: ourMemory / 1e6, unit: "MB" },
        reference: { value: theirMemory / 1e6, unit: "MB" },
        goal: { of: "ours", atMost: 250 },
      },
    ];
  } finally {
    await ours.stop();
    await reference.stop();
  }
}

type Sale = Awaited<ReturnType<typeof startSale>>;

/** A seller and its buyers. */
async function startSale(
  place: Place,
  kind: "ours" | "reference",
  load: { warmUp: number; perTurn: number },
) {
  const seller = await startSeller(place, kind);
  // Shorter than the seller's keep-alive timeout of five seconds. Otherwise a request races the
  // seller's close of an idle connection.
  const agent = new Agent({ keepAlive: true, maxSockets: 128, timeout: 2_000 });
  const count = turns * (alonePerTurn + load.perTurn) + load.warmUp;
  const side: Side<string> = {
    ...load,
    jobs: (await signPayments(place.devnet, count)).map(encodePaymentPayload),
    run: (header) => getPaid({ port: seller.port, agent, header }),
    processorSeconds: async () => (await seller.usage()).processorSeconds,
  };
  return {
    side,
    usage: seller.usage,
    stop: () => {
      agent.destroy();
      return seller.stop();
    },
  };
}

const alonePerTurn = 50;

/**
 * Median latency of sequential requests, in milliseconds. The sales take turns, on a nearly empty
 * chain.
 */
async function timeAlone(sales: readonly Sale[]): Promise<number[]> {
  const times = sales.map((): number[] => []);
  for (let turn = 0; turn < turns; turn += 1) {
    for (const [index, { side }] of sales.entries()) {
      const took = await timeEach(side.jobs.splice(0, alonePerTurn), side.run);
      // The first turn warms up.
      if (turn > 0) times[index]?.push(...took);
    }
  }
  return times.map((each) => percentile(each, 0.5));
}

async function unpaid(place: Place): Promise<Figure> {
  const rates = new Map<string, number>();
  const kinds = ["bare", "ours", "reference"] as const;
  // Round robin, and the best rate of each kind: a busy moment slows down one measurement only.
  for (const kind of [...kinds, ...kinds, ...kinds]) {
    const seller = await startSeller(place, kind);
    const url = `http://127.0.0.1:${seller.port}/weather`;
    await autocannon({ url, connections: 32, duration: 2 });
    const { requests } = await autocannon({ url, connections: 32, duration: 5 });
    rates.set(kind, Math.max(rates.get(kind) ?? 0, requests.average));
    await seller.stop();
  }
  const [bare = 0, ours = 0, reference = 0] = kinds.map((kind) => rates.get(kind));
  return {
    scenario: "unpaid GET, 402 answers, beside a bare route",
    ours: { value: ours, unit: "/s" },
    reference: { value: reference, unit: "/s" },
    ratio: { value: ours / bare, to: `${bare.toFixed(0)} /s bare` },
    goal: { of: "ratio", atLeast: 0.9 },
  };
}

function startSeller(
  { devnet, folder, program }: Place,
  kind: "ours" | "reference" | "bare",
): Promise<SellerProcess> {
  const { relayer, deployer } = devnet.accounts;
  return startSellerProcess(program, {
    kind,
    rpcUrl: devnet.rpcUrl,
    chainId: devnet.chainId,
    relayer: { privateKey: kind === "ours" ? relayer.privateKey : deployer.privateKey },
    ledger: `sqlite:${join(folder, "ledger.db")}`,
    requirements: requirementsOf(devnet),
  });
}
