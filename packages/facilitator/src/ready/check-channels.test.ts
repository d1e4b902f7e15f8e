import { type Devnet, type DevnetOptions, placeChannels, startDevnet } from "@coinslot/devnet";
import { ConfigurationError, channelContracts } from "@coinslot/protocol";
import { describe, expect, it, onTestFinished } from "vitest";
import type { ChannelOptions } from "../configuration/channel-options.ts";
import { createFacilitator } from "../create-facilitator.ts";

async function start(options: DevnetOptions = {}): Promise<Devnet> {
  const devnet = await startDevnet(options);
  onTestFinished(() => devnet.stop());
  return devnet;
}

/** Problems of a start with channels on these chains. */
async function problemsOf(devnets: readonly Devnet[], channels: ChannelOptions = {}) {
  const facilitator = createFacilitator({
    networks: devnets.map(({ network, rpcUrl, accounts }) => ({
      network,
      rpcUrls: [rpcUrl],
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

  it("needs the contracts only on the networks that are named", async () => {
    const [devnet, other] = [await start(), await start({ chainId: 988 })];
    await placeChannels(devnet);
    const named = { networks: [devnet.network] };
    expect(await problemsOf([devnet, other], named)).toEqual([]);
    expect(await problemsOf([devnet, other])).toHaveLength(2);
  });
});
