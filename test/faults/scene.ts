import { appendFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { bundleProgram } from "@coinslot/devnet/bundle-program";
import type { Address } from "@coinslot/protocol";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.ts";
import { type PlannedPurchase, price, validitySeconds } from "./purchase.ts";
import type { Random } from "./seeded-random.ts";
import type { SellerProgram } from "./worker-process.ts";

/** Environment of the sellers under test: chain, faulty RPC proxy, and files that outlive them. */
export interface Scene {
  devnet: Devnet;
  proxy: FaultProxy;
  program: SellerProgram;
  /** Holds the ledger's file, the log of the sellers, and the record of their handlers. */
  directory: string;
  /** Process id of each handler run, by path. */
  handlerRuns(): Promise<Map<string, number[]>>;
  /** Ends the chain; keeps the files for an inspection on request. */
  close(options: { keepsFiles: boolean }): Promise<void>;
}

const workerSource = new URL("./seller-worker.ts", import.meta.url);

/** More blocks than the network needs to call a payment final. */
const finalBlocks = 12;

/** Starts the chain and its proxy. Without `postgresUrl`, the ledger is a SQLite file. */
export async function openScene(options: {
  random: Random;
  postgresUrl?: string | undefined;
  faultShare: number;
  /** Default: the seller by transfers. */
  source?: URL;
}): Promise<Scene> {
  const { random, postgresUrl, faultShare, source = workerSource } = options;
  const directory = await mkdtemp(join(tmpdir(), "coinslot-faults-"));
  const runsFile = join(directory, "handler-runs.txt");
  await appendFile(runsFile, "");
  const devnet = await startDevnet({ accountCount: 4 });
  const proxy = await startFaultProxy({
    upstream: devnet.rpcUrl,
    random: random.fork("rpc"),
    faultShare,
  });
  return {
    devnet,
    proxy,
    directory,
    program: {
      file: await bundleProgram(source, directory),
      options: {
        network: devnet.network,
        rpcUrl: proxy.url,
        ledger: postgresUrl ?? `sqlite:${join(directory, "ledger.db")}`,
        relayerKey: devnet.accounts.relayer.privateKey,
        token: devnet.token,
        payTo: devnet.accounts.seller.address,
        price: price.toString(),
        validitySeconds,
        runsFile,
        logFile: join(directory, "facilitator.log"),
      },
    },
    handlerRuns: () => readRuns(runsFile),
    async close({ keepsFiles }) {
      await proxy.close();
      await devnet.stop();
      if (!keepsFiles) await rm(directory, { recursive: true, force: true });
    },
  };
}

/**
 * Gives honest payers twice the price of their purchases. A payment in a block that the ledger has
 * not yet recorded counts twice against a balance for a moment. Other payers get exactly that
 * price. No reorganisation reaches the blocks of these gifts.
 */
export async function fundPayers(
  devnet: Devnet,
  purchases: readonly PlannedPurchase[],
): Promise<void> {
  const needs = new Map<Address, bigint>();
  for (const { payer, interference } of purchases) {
    const cost = interference === "none" ? 2n * price : price;
    needs.set(payer.address, (needs.get(payer.address) ?? 0n) + cost);
  }
  await Promise.all([...needs].map(([to, amount]) => devnet.mint({ to, amount })));
  await devnet.mine(finalBlocks);
}

async function readRuns(file: string): Promise<Map<string, number[]>> {
  const runs = new Map<string, number[]>();
  for (const line of (await readFile(file, "utf8")).split("\n")) {
    const [pid = "", path] = line.split(" ");
    if (path !== undefined) runs.set(path, [...(runs.get(path) ?? []), Number(pid)]);
  }
  return runs;
}
