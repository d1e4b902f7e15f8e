import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DevAccount, type Devnet, startDevnet, testUsdt0 } from "@coinslot/devnet";
import { createLogger } from "@coinslot/hosting";
import { createIndexerClient, devnetChain } from "@coinslot/indexer";
import { startPaidIndexer } from "@coinslot/paid-indexer-app";
import { plasma, plasmaUsdt0 } from "@coinslot/protocol";

/** A chain with regular payments, and a seller of its data. */
export interface Market {
  devnet: Devnet;
  /** URL of the seller. */
  url: string;
  /** URL of the seller's ledger. */
  ledger: string;
  /** Price of one request, in the token's smallest unit. */
  price: bigint;
  /** Accounts with tokens, which do not buy or sell. The first pays the others. */
  people: readonly [DevAccount, DevAccount, DevAccount];
  /** Lets one of the people pay another. */
  makeTransfer(): Promise<void>;
  close(): Promise<void>;
}

const price = 1_000n;
const startTransfers = 12;
const indexingTimeoutMs = 20_000;

/**
 * Opens a market. It is a local Plasma with payments among people, an indexing service for it, and
 * a seller of its data. Resolves when all that has happened can be bought.
 *
 * @throws ConfigurationError where it cannot be opened, such as when the port is taken
 */
export async function openMarket({ port = 0 }: { port?: number } = {}): Promise<Market> {
  const devnet = await startDevnet({ chainId: 9745 });
  const { buyer, seller, relayer, others } = devnet.accounts;
  const [first, second, third, float] = others;
  if (!first || !second || !third || !float) throw new Error("The devnet is not what it was.");
  const recipients = [second, third] as const;
  const folder = await mkdtemp(join(tmpdir(), "coinslot-demo-"));
  const ledger = `sqlite:${join(folder, "coinslot.db")}`;
  let count = 0;

  async function makeTransfer(): Promise<void> {
    count += 1;
    await devnet.client.writeContract({
      account: first,
      address: devnet.token,
      abi: testUsdt0.abi,
      functionName: "transfer",
      args: [recipients[count % 2 === 0 ? 0 : 1].address, BigInt(count) * 1_000n],
    });
  }

  try {
    await devnet.mint({ to: buyer.address, amount: 1_000_000_000n });
    await devnet.mint({ to: first.address, amount: 50_000_000n });
    await devnet.mint({ to: float.address, amount: 1_000_000n });
    while (count < startTransfers) await makeTransfer();
    const market = await startPaidIndexer(
      {
        host: "127.0.0.1",
        port,
        trustProxy: 0,
        logLevel: "warn",
        terms: { network: plasma, asset: plasmaUsdt0, price, payTo: seller.address },
        facilitator: {
          networks: [{ network: plasma, rpcUrls: [devnet.rpcUrl], relayer }],
          ledger,
          refunds: { privateKey: float.privateKey },
        },
        upstream: {
          embedded: {
            chains: [devnetChain({ name: "plasma", rpcUrls: [devnet.rpcUrl] })],
            database: "sqlite::memory:",
          },
        },
      },
      { logger: createLogger("warn") },
    );
    await untilIndexed(market.url);
    return {
      devnet,
      url: market.url,
      ledger,
      price,
      people: [first, second, third],
      makeTransfer,
      async close() {
        await market.stop();
        await end();
      },
    };
  } catch (error) {
    await end();
    throw error;
  }

  async function end(): Promise<void> {
    await devnet.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Health is free, and returns the data's lag behind the chain. */
async function untilIndexed(url: string): Promise<void> {
  const client = createIndexerClient({ url });
  const patience = AbortSignal.timeout(indexingTimeoutMs);
  for (;;) {
    const { status, checks } = await client.getHealth();
    if (status === "healthy" && checks.indexers["plasma:usdt"]?.lag === 0) return;
    if (patience.aborted) throw new Error(`The indexing service is ${status} and behind.`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
