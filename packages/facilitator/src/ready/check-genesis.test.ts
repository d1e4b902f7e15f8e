import { type Devnet, startDevnet } from "@coinslot/devnet";
import { ConfigurationError } from "@coinslot/protocol";
import { describe, expect, it, onTestFinished } from "vitest";
import { createFacilitator } from "../create-facilitator.ts";
import { startNodeProxy } from "../testing/node-proxy.ts";
import { signPayment } from "../testing/payments.ts";
import { createTestLedger, enginesByDay } from "../testing/settling-devnet.ts";

async function start(options: Parameters<typeof startDevnet>[0] = {}): Promise<Devnet> {
  const devnet = await startDevnet(options);
  onTestFinished(() => devnet.stop());
  return devnet;
}

/** Starts a facilitator on a ledger, lets it work, and closes it. */
async function open<Result>(
  { network, accounts }: Devnet,
  { rpcUrl, ledger }: { rpcUrl: string; ledger: string },
  work: (facilitator: ReturnType<typeof createFacilitator>) => Promise<Result>,
): Promise<Result> {
  const { privateKey } = accounts.relayer;
  const facilitator = createFacilitator({
    networks: [{ network, rpcUrls: [rpcUrl], relayer: { privateKey } }],
    ledger,
  });
  try {
    await facilitator.ready();
    return await work(facilitator);
  } finally {
    await facilitator.close();
  }
}

const nothing = async () => undefined;

describe.each(enginesByDay("sqlite"))("a ledger on %s beside a development chain", (engine) => {
  it("names the chain that was started anew, and works with the former one", async () => {
    const ledger = await createTestLedger(engine);
    onTestFinished(() => ledger.drop());
    const former = await start();
    const { buyer, seller } = former.accounts;
    const { network, token: asset, rpcUrl } = former;
    await former.mint({ to: buyer.address, amount: 1_000n });
    const place = { rpcUrl, ledger: ledger.url };
    await open(former, place, async (facilitator) => {
      const { paymentPayload, paymentRequirements } = await signPayment({
        network,
        asset,
        signer: buyer,
        payTo: seller.address,
      });
      const settled = await facilitator.settle(paymentPayload, paymentRequirements);
      expect(settled.success).toBe(true);
    });

    // Chains that begin in the same second have the same first block, but for its gas limit.
    const anew = await start({ blockGasLimit: 31_000_000n });
    const failure = await open(anew, { ...place, rpcUrl: anew.rpcUrl }, nothing).catch(
      (error: unknown) => error,
    );
    expect(failure).toBeInstanceOf(ConfigurationError);
    expect(failure).toMatchObject({
      problems: [expect.stringContaining(`${network} is not the chain of the ledger's payments`)],
    });
    await expect(open(former, place, nothing)).resolves.toBeUndefined();
  });

  it("takes another chain while it has no payments, and any whose first block is not kept", async () => {
    const ledger = await createTestLedger(engine);
    onTestFinished(() => ledger.drop());
    const devnet = await start();
    let hash: string | undefined = `0x${"ab".repeat(32)}`;
    const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) => {
      if (method !== "eth_getBlockByNumber" || params[0] !== "0x0") return ask();
      return hash === undefined ? { result: null } : { result: { hash } };
    });
    onTestFinished(() => proxy.close());
    const place = { rpcUrl: proxy.url, ledger: ledger.url };
    for (hash of [hash, `0x${"cd".repeat(32)}`, undefined]) {
      await expect(open(devnet, place, nothing)).resolves.toBeUndefined();
    }
  });
});
