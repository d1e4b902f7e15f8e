import { mkdtemp, rm } from "node:fs/promises";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { bundleProgram } from "@coinslot/devnet/bundle-program";
import { encodePaymentPayload, headerName } from "@coinslot/protocol";
import autocannon from "autocannon";
import type { Figure } from "../support/figure.ts";
import { percentile, timeConcurrently, timeEach } from "../support/measure.ts";
import { type SellerProcess, startSellerProcess } from "../support/seller.ts";
import { fundPayers, requirementsOf, signPayments } from "../support/signed-payments.ts";

/** Paid and unpaid requests over HTTP, the seller in a process of its own. */
export async function http(): Promise<Figure[]> {
  const devnet = await startDevnet({ accountCount: 40 });
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  try {
    await fundPayers(devnet);
    const source = new URL("../support/seller-process.ts", import.meta.url);
    const place = { devnet, folder, program: await bundleProgram(source, folder) };
    const ours = await sell(place, "ours");
    const reference = await sell(place, "reference");
    return [
      {
        scenario: "paid GET, one at a time, p50",
        ours: `${ours.p50.toFixed(1)} ms`,
        reference: `${reference.p50.toFixed(1)} ms`,
        ratio: `${(ours.p50 / reference.p50).toFixed(2)}x the time`,
        goal: "0.5x",
      },
      {
        scenario: "paid GET, 128 at once",
        ours: `${ours.rate.toFixed(0)} /s`,
        reference: `${reference.rate.toFixed(0)} /s`,
        ratio: `${(ours.rate / reference.rate).toFixed(1)}x`,
        goal: "10x",
      },
      {
        scenario: "memory of the seller under this load",
        ours: `${(ours.memory / 1e6).toFixed(0)} MB`,
        reference: `${(reference.memory / 1e6).toFixed(0)} MB`,
        ratio: "",
        goal: "< 250 MB",
      },
      await unpaid(place),
    ];
  } finally {
    await rm(folder, { recursive: true, force: true });
    await devnet.stop();
  }
}

/** What all sellers of a run share. */
interface Place {
  devnet: Devnet;
  folder: string;
  program: string;
}

async function sell(place: Place, kind: "ours" | "reference") {
  const seller = await startSeller(place, kind);
  const agent = new Agent({ keepAlive: true, maxSockets: 128 });
  try {
    const atOnce = kind === "ours" ? 4096 : 512;
    const headers = (await signPayments(place.devnet, 100 + 256 + atOnce)).map(
      encodePaymentPayload,
    );
    const buy = (header: string) => get({ port: seller.port, agent, header });
    await timeConcurrently(headers.splice(0, 256), 128, buy);
    const p50 = percentile(await timeEach(headers.splice(0, 100), buy), 0.5);
    const seconds = await timeConcurrently(headers, 128, buy);
    return { p50, rate: headers.length / seconds, memory: await seller.memory() };
  } finally {
    agent.destroy();
    await seller.stop();
  }
}

async function unpaid(place: Place): Promise<Figure> {
  const rates = new Map<string, number>();
  const kinds = ["bare", "ours", "reference"] as const;
  // In turns, and the best of each: a machine that is busy for a moment slows one of them down.
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
    ours: `${ours.toFixed(0)} /s`,
    reference: `${reference.toFixed(0)} /s`,
    ratio: `${(ours / bare).toFixed(2)}x of ${bare.toFixed(0)} /s bare`,
    goal: "0.9x",
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
    privateKey: kind === "ours" ? relayer.privateKey : deployer.privateKey,
    ledger: `sqlite:${join(folder, "ledger.db")}`,
    requirements: requirementsOf(devnet),
  });
}

function get(options: { port: number; agent: Agent; header: string }): Promise<void> {
  const { port, agent, header } = options;
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: "127.0.0.1",
        port,
        agent,
        path: "/weather",
        headers: { [headerName.paymentSignature]: header },
      },
      (response) => {
        let body = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          body += chunk;
        });
        response.on("end", () => {
          if (response.statusCode === 200) resolve();
          else reject(new Error(`A paid request was answered ${response.statusCode}: ${body}`));
        });
      },
    );
    sent.on("error", reject);
    sent.end();
  });
}
