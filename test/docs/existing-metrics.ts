import { createFacilitator } from "@coinslot/facilitator";
import { createFacilitatorMetrics } from "../../packages/hosting/src/facilitator/service-metrics.ts";
import { createIndexerMetrics } from "../../packages/hosting/src/indexer/service-metrics.ts";
import { createApiMetrics } from "../../packages/indexer/src/api/api-metrics.ts";

/** Names and types of the metrics of ours, of every service, as a scrape has them. */
export async function readExistingMetrics(): Promise<ReadonlyMap<string, string>> {
  const types = (await readFirstScrape()).matchAll(/^# TYPE (coinslot_\w+) (\w+)/gm);
  return new Map([...types].map(([, name = "", type = ""]) => [name, type]));
}

/** The text of a scrape before anything has happened. */
export async function readFirstScrape(): Promise<string> {
  const facilitator = createFacilitator({
    networks: [
      { network: "eip155:9745", rpcUrls: ["http://127.0.0.1:1"], relayer: `0x${"77".repeat(32)}` },
    ],
    ledger: "sqlite::memory:",
  });
  const hosted = await createFacilitatorMetrics().read(facilitator.metrics);
  const indexer = createIndexerMetrics().registry;
  createApiMetrics(indexer);
  await facilitator.close();
  return [hosted.text, await indexer.metrics()].join("\n");
}
