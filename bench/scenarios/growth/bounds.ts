import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { bundleProgram } from "@coinslot/devnet/bundle-program";
import { encodePaymentPayload, headerName } from "@coinslot/protocol";
import { parseAbi } from "viem";
import type { Figure } from "../../support/figure.ts";
import { percentile } from "../../support/measure.ts";
import type { RouteTimes } from "../../support/route-reader.ts";
import { startSellerProcess } from "../../support/seller.ts";
import { fundPayers, requirementsOf, signPayments } from "../../support/signed-payments.ts";
import { untilAtRest } from "../../support/until-at-rest.ts";

const routeCount = Number(process.env.BENCH_ROUTES ?? 10_000);
/** Paid requests a second, for this many seconds: several times of what one process sells. */
const rate = Number(process.env.BENCH_OVERLOAD_RATE ?? 2_000);
const seconds = Number(process.env.BENCH_OVERLOAD_SECONDS ?? 3);
const connections = 3_000;
/** A buyer leaves after this time. */
const patienceMs = 6_000;

/** The bounds of a seller: many routes, and more buyers than it can serve. */
export async function bounds(): Promise<Figure[]> {
  return [...(await manyRoutes()), ...(await overload())];
}

/** Reading many routes, and requests that none of them sells. */
async function manyRoutes(): Promise<Figure[]> {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  try {
    const source = new URL("../../support/route-reader.ts", import.meta.url);
    const program = await bundleProgram(source, folder, { minifies: true });
    const { stdout } = await promisify(execFile)(process.execPath, [program, `${routeCount}`]);
    const times: RouteTimes = JSON.parse(stdout);
    const routesRead = `${routeCount.toLocaleString("en")} routes`;
    return [
      {
        scenario: `reading ${routesRead}, processor time`,
        ours: { value: times.reading, unit: "ms" },
        goal: { of: "ours", atMost: 300 },
      },
      { scenario: `first request to ${routesRead}`, ours: { value: times.firstMiss, unit: "ms" } },
      {
        scenario: `a miss among ${routesRead}, p50`,
        ours: { value: times.miss, unit: "ms" },
        goal: { of: "ours", atMost: 0.1 },
      },
    ];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Outcome of a buyer's request. */
interface Visit {
  ms: number;
  outcome: "sold" | "refused" | "left" | "failed";
}

/** Buyers come at a fixed rate, whatever the answers, and leave when their patience is over. */
async function overload(): Promise<Figure[]> {
  const devnet = await startDevnet({
    // A payer without sales may run 20 handlers at once.
    accountCount: 110,
    blockTimeSeconds: 1,
    blockGasLimit: 30_000_000n,
  });
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  try {
    await devnet.setAutomine(true);
    await fundPayers(devnet);
    await devnet.setAutomine(false);
    await devnet.setIntervalMining(1);
    const source = new URL("../../support/seller-process.ts", import.meta.url);
    const seller = await startSellerProcess(
      await bundleProgram(source, folder, { minifies: true }),
      {
        kind: "ours",
        rpcUrl: devnet.rpcUrl,
        chainId: devnet.chainId,
        relayer: { privateKey: devnet.accounts.relayer.privateKey },
        ledger: `sqlite:${join(folder, "ledger.db")}`,
        requirements: requirementsOf(devnet),
      },
    );
    try {
      return await comeAndLeave(devnet, seller.port);
    } finally {
      await seller.stop();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
    await devnet.stop();
  }
}

async function comeAndLeave(devnet: Devnet, port: number): Promise<Figure[]> {
  const payments = await signPayments(devnet, rate * seconds);
  const [first, ...others] = payments.map(encodePaymentPayload);
  if (first !== undefined) await visit({ port, agent: new Agent(), header: first });
  // Connections as of a proxy, open before the load: Node accepts one at a time. They are given up
  // before the seller closes idle ones.
  const agent = new Agent({
    keepAlive: true,
    maxSockets: connections,
    maxFreeSockets: connections,
    timeout: 4_000,
  });
  await Promise.all(Array.from({ length: connections }, () => visit({ port, agent })));
  let waiting = 0;
  let maxWaiting = 0;
  const started = performance.now();
  const visits: Promise<Visit>[] = [];
  while (visits.length < others.length) {
    const due = Math.min(others.length, ((performance.now() - started) * rate) / 1_000);
    for (const header of others.slice(visits.length, due)) {
      waiting += 1;
      maxWaiting = Math.max(maxWaiting, waiting);
      const ended = visit({ port, agent, header }).finally(() => {
        waiting -= 1;
      });
      visits.push(ended);
    }
    await sleep(10);
  }
  const ended = await Promise.all(visits);
  agent.destroy();
  const of = (outcome: Visit["outcome"]) => ended.filter((each) => each.outcome === outcome);
  const left = payments.slice(1).filter((_, index) => ended[index]?.outcome === "left");
  const paidAndLeft = await countPaid(devnet, left);
  const sold = of("sold").map(({ ms }) => ms / 1_000);
  const refused = of("refused").map(({ ms }) => ms);
  const load = `${rate.toLocaleString("en")} paid GETs a second for ${seconds} s`;
  return [
    { scenario: `${load}: most that waited`, ours: { value: maxWaiting, unit: "requests" } },
    { scenario: "  sold", ours: { value: sold.length, unit: "requests" } },
    { scenario: "  p99 of those sold", ours: { value: percentile(sold, 0.99), unit: "s" } },
    { scenario: "  connections that broke", ours: { value: of("failed").length, unit: "" } },
    { scenario: "  refused with 503 or 429", ours: { value: refused.length, unit: "requests" } },
    {
      scenario: "  p50 until a refusal",
      ours: { value: refused.length > 0 ? percentile(refused, 0.5) : 0, unit: "ms" },
    },
    {
      scenario: `  left after ${patienceMs / 1_000} s, and had paid`,
      ours: { value: paidAndLeft, unit: "buyers" },
      goal: { of: "ours", atMost: 0 },
    },
  ];
}

/** The payments that the chain has executed, once it is at rest. */
async function countPaid(
  devnet: Devnet,
  payments: Awaited<ReturnType<typeof signPayments>>,
): Promise<number> {
  await devnet.setIntervalMining(0);
  await devnet.setAutomine(true);
  await untilAtRest(devnet);
  let paid = 0;
  for (const { payload } of payments) {
    const isUsed = await devnet.client.readContract({
      address: devnet.token,
      abi: parseAbi(["function authorizationState(address, bytes32) view returns (bool)"]),
      functionName: "authorizationState",
      args: [payload.authorization.from, payload.authorization.nonce],
    });
    if (isUsed) paid += 1;
  }
  return paid;
}

function visit(options: { port: number; agent: Agent; header?: string }): Promise<Visit> {
  const { port, agent, header } = options;
  const started = performance.now();
  return new Promise((resolve) => {
    const end = (outcome: Visit["outcome"]) =>
      resolve({ ms: performance.now() - started, outcome });
    const headers = header === undefined ? {} : { [headerName.paymentSignature]: header };
    const sent = request({ host: "127.0.0.1", port, agent, path: "/weather", headers });
    const patience = setTimeout(() => {
      end("left");
      sent.destroy();
    }, patienceMs);
    sent.on("response", (response) => {
      response.resume();
      response.on("end", () => {
        clearTimeout(patience);
        const { statusCode } = response;
        const isRefused = statusCode === 503 || statusCode === 429;
        end(statusCode === 200 ? "sold" : isRefused ? "refused" : "failed");
      });
    });
    sent.on("error", () => {
      clearTimeout(patience);
      end("failed");
    });
    sent.end();
  });
}
