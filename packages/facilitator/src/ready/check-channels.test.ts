import { type Devnet, type DevnetOptions, placeChannels, startDevnet } from "@coinslot/devnet";
import { ConfigurationError, channelContracts } from "@coinslot/protocol";
import { describe, expect, it, onTestFinished } from "vitest";
import type { ChannelOptions } from "../configuration/channel-options.ts";
import { createFacilitator } from "../create-facilitator.ts";
import { startNodeProxy } from "../testing/node-proxy.ts";

async function start(options: DevnetOptions = {}): Promise<Devnet> {
  const devnet = await startDevnet(options);
  onTestFinished(() => devnet.stop());
  return devnet;
}

/** Problems of a start with channels on these chains. `first`: an endpoint before the chain's. */
async function problemsOf(
  devnets: readonly Devnet[],
  { first = [], ...channels }: ChannelOptions & { first?: string[] } = {},
) {
  const facilitator = createFacilitator({
    networks: devnets.map(({ network, rpcUrl, accounts }) => ({
      network,
      rpcUrls: [...first, rpcUrl],
      relayer: { privateKey: accounts.relayer.privateKey },
    })),
    ledger: "sqlite::memory:",
    channels: {
      authorizer: { privateKey: devnets[0]?.accounts.deployer.privateKey },
      ...channels,
    },
  });
  try {
    await facilitator.ready();
    return [];
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return error.problems;
  } finally {
    await facilitator.close();
  }
}

describe("a start with channels", () => {
  it("is refused on a chain without their contracts, with all problems at once", async () => {
    const devnet = await start();
    const { settlement, erc3009Collector } = channelContracts;
    expect(await problemsOf([devnet])).toEqual([
      expect.stringContaining(`${devnet.network} has no contract at ${settlement.toLowerCase()}`),
      expect.stringContaining(`${devnet.network} has no collector`),
    ]);

    await devnet.client.setCode({ address: settlement, bytecode: "0x00" });
    expect((await problemsOf([devnet]))[0]).toMatch(
      /another contract than the escrow of payment channels at 0x\w+ \(domain, CHANNEL_CONFIG_TYPEHASH/,
    );

    await placeChannels(devnet);
    expect(await problemsOf([devnet])).toEqual([]);
    await devnet.client.setCode({ address: erc3009Collector, bytecode: "0x" });
    expect(await problemsOf([devnet])).toEqual([expect.stringContaining(erc3009Collector)]);
  });

  it("is refused on a chain without transient storage", async () => {
    const devnet = await start({ hardfork: "shanghai" });
    await placeChannels(devnet);
    expect(await problemsOf([devnet])).toEqual([expect.stringContaining("lacks EIP-1153")]);
  });

  it.each(["eth_getCode", "eth_call"])(
    "goes on beside a first endpoint that lies by %s",
    async (lie) => {
      const devnet = await start();
      await placeChannels(devnet);
      const liar = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) =>
        method === lie ? { result: "0x" } : ask(),
      );
      onTestFinished(() => liar.close());
      expect(await problemsOf([devnet], { first: [liar.url] })).toEqual([]);
    },
  );

  it("needs the contracts only on the networks that are named", async () => {
    const [devnet, other] = [await start(), await start({ chainId: 988 })];
    await placeChannels(devnet);
    const named = { networks: [devnet.network] };
    expect(await problemsOf([devnet, other], named)).toEqual([]);
    expect(await problemsOf([devnet, other])).toHaveLength(2);
  });
});
