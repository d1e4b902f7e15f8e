// An indexer in a process of its own, started on an empty database and an existing chain. Reports
// its costs once every transfer is stored.
import { httpPost } from "@coinslot/chain";
import { createIndexer, devnetChain } from "@coinslot/indexer";

/** The parent's options in the environment variable `INDEXER`. */
export interface IndexerProcessOptions {
  rpcUrl: string;
  database: string;
  /** Number of transfers. */
  transfers: number;
}

/** The report at the process's end. */
export interface IndexerRun {
  seconds: number;
  /** Of our processor time. On a busy machine this is more reliable than wall-clock time. */
  processorSeconds: number;
  requests: number;
  /** The same, and those of the second reading of all of it. */
  requestsVerified: number;
  /** Most memory that the process was seen to hold. */
  peakBytes: number;
  stored: number;
}

const options: IndexerProcessOptions = JSON.parse(process.env.INDEXER ?? "");
/** Polling is work too: a shorter interval would slow down the measured code. */
const pollMs = 100;
let requests = 0;
/** Requests for logs or receipts. */
let reads = 0;
let peakBytes = 0;
const sampling = setInterval(() => {
  peakBytes = Math.max(peakBytes, process.memoryUsage.rss());
}, 20);

const indexer = createIndexer({
  chains: [devnetChain({ rpcUrls: [options.rpcUrl] })],
  database: options.database,
  post(request) {
    requests += 1;
    if (/eth_getLogs|Receipt/.test(request.body)) reads += 1;
    return httpPost(request);
  },
});
const startedAt = performance.now();
const usedBefore = process.cpuUsage();
await indexer.start();
while (!(await isDone())) await new Promise((resolve) => setTimeout(resolve, pollMs));
const seconds = (performance.now() - startedAt) / 1000;
const used = process.cpuUsage(usedBefore);
const processorSeconds = (used.user + used.system) / 1e6;
const requestsOnce = requests;
// From here on the head is polled, which is not part of the second reading.
const readsOnce = reads;
while (!(await isVerified())) await new Promise((resolve) => setTimeout(resolve, pollMs));
const database = await indexer.database();
const { stored } = await database.kysely
  .selectFrom("indexer_transfers")
  .select(({ fn }) => fn.countAll<number>().as("stored"))
  .executeTakeFirstOrThrow();
clearInterval(sampling);
await indexer.close();
process.send?.({
  seconds,
  processorSeconds,
  requests: requestsOnce,
  requestsVerified: requestsOnce + reads - readsOnce,
  peakBytes,
  stored,
} satisfies IndexerRun);
process.disconnect();

async function isDone(): Promise<boolean> {
  const [chain] = (await indexer.status()).chains;
  return chain?.state === "live" && chain.lagBlocks === 0;
}

async function isVerified(): Promise<boolean> {
  const [chain] = (await indexer.status()).chains;
  return chain?.finalized !== undefined && chain.tokens[0]?.verifiedTo === chain.finalized;
}
