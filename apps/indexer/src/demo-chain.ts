import { startDevnet, testUsdt0 } from "@coinslot/devnet";
import type { IndexerService } from "@coinslot/hosting";
import { devnetChain, type IndexerConfigurationInput } from "@coinslot/indexer";

/**
 * A demo chain: a buyer pays an account now and then. All ends with the process, and leaves
 * nothing.
 */
export interface DemoChain {
  /** Configuration for following this chain. */
  overrides: Partial<IndexerConfigurationInput>;
  /** Creates an API key that is public, and returns what to try. */
  introduce(service: IndexerService): Promise<string>;
  stop(): Promise<void>;
}

/** A key for chains of no value on this machine. */
const publicKey = "csk_devnetpublic_everybody-knows-this-key-use-it-nowhere-else";
const paymentEveryMs = 2_000;

export async function startDemoChain(): Promise<DemoChain> {
  const devnet = await startDevnet();
  const { buyer, seller, others } = devnet.accounts;
  await devnet.mint({ to: buyer.address, amount: 1_000_000_000n });
  const recipients = [seller, ...others];

  async function pay(count: number): Promise<void> {
    const recipient = recipients[count % recipients.length] ?? seller;
    await devnet.client.writeContract({
      account: buyer,
      address: devnet.token,
      abi: testUsdt0.abi,
      functionName: "transfer",
      args: [recipient.address, BigInt(1_000 + count)],
    });
  }

  for (let count = 0; count < 15; count += 1) await pay(count);
  let count = 15;
  const timer = setInterval(() => {
    count += 1;
    // A chain that is about to end takes no more payments, and none is missed.
    pay(count).catch(() => undefined);
  }, paymentEveryMs);

  return {
    overrides: {
      chains: [devnetChain({ rpcUrls: [devnet.rpcUrl] })],
      database: "sqlite::memory:",
    },

    async introduce({ url, keys }) {
      await keys.create({ owner: "devnet", label: "public", key: publicKey });
      const address = `${url}/api/v1/devnet/usdt/${buyer.address}`;
      return `
Following a devnet at ${devnet.rpcUrl}; the buyer ${buyer.address} makes a payment every 2 s.

  Page to try it   ${url}/docs
  Key              ${publicKey}

  curl -H "x-api-key: ${publicKey}" "${address}/token-transfers?limit=3"
  curl -H "x-api-key: ${publicKey}" "${address}/token-balances"
  curl -N -H "x-api-key: ${publicKey}" -H "accept: text/event-stream" "${address}/token-transfers"

Ctrl-C stops it.`;
    },

    async stop() {
      clearInterval(timer);
      await devnet.stop();
    },
  };
}
