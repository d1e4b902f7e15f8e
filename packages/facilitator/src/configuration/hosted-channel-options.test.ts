import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { type HostedChannelOptions, readHostedChannelOptions } from "./hosted-channel-options.ts";

const network = "eip155:9745";
const privateKey = `0x${"77".repeat(32)}` as const;
const { address } = privateKeyToAccount(privateKey);
const receiver = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
const callers = [{ name: "shop", receivers: [receiver] }] as const;

function read(options: HostedChannelOptions | undefined, sellers: (typeof receiver)[] = []) {
  const networks = [{ network, relayers: [{ address: receiver }] }] as const;
  return readHostedChannelOptions(options, {
    networks,
    sellers: sellers.map((each) => ({ address: each })),
  });
}

describe("options of channels for callers", () => {
  it("are off unless they are given, and sign for none without a key", () => {
    expect(read(undefined)).toEqual({ settings: undefined, problems: [] });
    const { settings, problems } = read({ callers });
    expect(problems).toEqual([]);
    expect(settings).toMatchObject({ signer: undefined, gasPerHour: 60_000_000n });
    expect(settings?.networks).toEqual(new Set([network]));
    expect(settings?.receivers.get("shop")).toEqual(new Set([receiver.toLowerCase()]));
  });

  it("name all their problems, and repeat no secret", () => {
    const { problems } = read({
      callers: [
        { name: "shop", receivers: [] },
        { name: "shop", receivers: ["0x12"] },
      ],
      authorizer: { privateKey: "0x77" },
      gasPerHour: 1n,
      networks: ["eip155:1"],
    });
    expect(problems).toHaveLength(6);
    expect(problems.join(" ")).not.toContain("0x77");
    expect(read({ callers: [] }).problems).toHaveLength(1);
  });

  it("have another key than the relayers, and than the channels that are sold by here", () => {
    const networks = [{ network, relayers: [{ address }] }] as const;
    const options = { callers, authorizer: { privateKey } };
    expect(
      readHostedChannelOptions(options, { networks, sellers: [{ address }] }).problems,
    ).toEqual([
      "hostedChannels.authorizer is that of channels: two sellers would sell on one voucher",
      `hostedChannels.authorizer is a relayer of ${network}: give it its own key`,
    ]);
  });
});
