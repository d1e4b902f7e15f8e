import { type Devnet, startDevnet } from "@coinslot/devnet";
import { ConfigurationError, type Hex } from "@coinslot/protocol";
import { describe, expect, it, onTestFinished } from "vitest";
import { type CoinslotFacilitator, createFacilitator } from "../create-facilitator.ts";
import { type Logger, silentLogger } from "../logger.ts";
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
  { rpcUrls, ledger, logger }: { rpcUrls: readonly string[]; ledger: string; logger?: Logger },
  work: (facilitator: ReturnType<typeof createFacilitator>) => Promise<Result>,
): Promise<Result> {
  const { privateKey } = accounts.relayer;
  const facilitator = createFacilitator({
    networks: [{ network, rpcUrls, relayer: { privateKey } }],
    ledger,
    ...(logger && { logger }),
  });
  try {
    await facilitator.ready();
    return await work(facilitator);
  } finally {
    await facilitator.close();
  }
}

const nothing = async () => undefined;

/** Starts a facilitator, and closes it. Resolves to its configuration's problems. */
async function problemsOf(
  devnet: Devnet,
  place: Parameters<typeof open>[1],
): Promise<readonly string[]> {
  try {
    await open(devnet, place, nothing);
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
}

/** Settles a payment: from then on the ledger has one chain. */
async function payOnce(
  { accounts: { buyer, seller }, network, token: asset, mint }: Devnet,
  facilitator: CoinslotFacilitator,
): Promise<void> {
  await mint({ to: buyer.address, amount: 1_000n });
  const { paymentPayload, paymentRequirements } = await signPayment({
    network,
    asset,
    signer: buyer,
    payTo: seller.address,
  });
  const settled = await facilitator.settle(paymentPayload, paymentRequirements);
  expect(settled.success).toBe(true);
}

/** A node in front of a true one. `null`: it keeps no first block. */
async function showGenesis(devnet: Devnet, hash: () => Hex | null | undefined): Promise<string> {
  const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) => {
    const shown = hash();
    if (method !== "eth_getBlockByNumber" || params[0] !== "0x0" || shown === undefined) {
      return ask();
    }
    if (shown === null) return { result: null };
    const answer = await ask();
    return "result" in answer ? { result: { ...Object(answer.result), hash: shown } } : answer;
  });
  onTestFinished(() => proxy.close());
  return proxy.url;
}

const madeUp: Hex = `0x${"ab".repeat(32)}`;

describe.each(enginesByDay("sqlite"))("a ledger on %s beside a development chain", (engine) => {
  it("names the chain that was started anew, and works with the former one", async () => {
    const ledger = await createTestLedger(engine);
    onTestFinished(() => ledger.drop());
    const former = await start();
    const { network } = former;
    const place = { rpcUrls: [former.rpcUrl], ledger: ledger.url };
    await open(former, place, (facilitator) => payOnce(former, facilitator));

    // Chains that begin in the same second have the same first block, but for its gas limit.
    const anew = await start({ blockGasLimit: 31_000_000n });
    expect(await problemsOf(anew, { ...place, rpcUrls: [anew.rpcUrl] })).toEqual([
      expect.stringContaining(`${network} is not the chain of the ledger's payments`),
    ]);
    await expect(open(former, place, nothing)).resolves.toBeUndefined();
  });

  it("takes another chain while it has no payments, and any whose first block is not kept", async () => {
    const ledger = await createTestLedger(engine);
    onTestFinished(() => ledger.drop());
    const devnet = await start();
    let hash: Hex | null = madeUp;
    const rpcUrls = [await showGenesis(devnet, () => hash)];
    const place = { rpcUrls, ledger: ledger.url };
    for (hash of [madeUp, `0x${"cd".repeat(32)}` as const, null]) {
      await expect(open(devnet, place, nothing)).resolves.toBeUndefined();
    }
  });

  it("is started again beside one node of two that makes up a first block, and names that node", async () => {
    const ledger = await createTestLedger(engine);
    onTestFinished(() => ledger.drop());
    const devnet = await start();
    const { network, rpcUrl } = devnet;
    let hash: Hex | undefined;
    const liar = await showGenesis(devnet, () => hash);
    await open(devnet, { rpcUrls: [liar, rpcUrl], ledger: ledger.url }, (facilitator) =>
      payOnce(devnet, facilitator),
    );
    hash = madeUp;
    for (const [endpoint, rpcUrls] of [
      [1, [liar, rpcUrl]],
      [2, [rpcUrl, liar]],
    ] as const) {
      const errors: object[] = [];
      const logger = { ...silentLogger, error: (fields: object) => void errors.push(fields) };
      expect(await problemsOf(devnet, { rpcUrls, ledger: ledger.url, logger })).toEqual([]);
      expect(errors).toEqual([expect.objectContaining({ network, endpoint, hash })]);
    }
    const alone = { rpcUrls: [liar], ledger: ledger.url };
    expect(await problemsOf(devnet, alone)).toEqual([expect.stringContaining(madeUp)]);
  });

  it("keeps no first block about which nodes differ, and names both", async () => {
    const ledger = await createTestLedger(engine);
    onTestFinished(() => ledger.drop());
    const devnet = await start();
    const { rpcUrl, client } = devnet;
    const liar = await showGenesis(devnet, () => madeUp);
    const { hash } = await client.getBlock({ blockNumber: 0n });
    const both = { rpcUrls: [liar, rpcUrl], ledger: ledger.url };
    const problems = await problemsOf(devnet, both);
    expect(problems).toEqual([expect.stringContaining(hash)]);
    expect(problems).toEqual([expect.stringContaining(madeUp)]);
    // That of the only one that answers is kept, as of one endpoint.
    const dead = await startNodeProxy(rpcUrl, async () => undefined);
    await dead.close();
    const rpcUrls = [dead.url, await showGenesis(devnet, () => null), rpcUrl];
    await open(devnet, { rpcUrls, ledger: ledger.url }, (facilitator) =>
      payOnce(devnet, facilitator),
    );
    expect(await problemsOf(devnet, both)).toEqual([]);
  });
});
