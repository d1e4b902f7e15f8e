import { describe, expect, it } from "vitest";
import { createCallerKey } from "./caller-keys.ts";
import { readChannelSettings } from "./channel-settings.ts";

const seller = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
const other = "0x90F79bf6EB2c4f870365E785982E1f101E93b906";
const keys = ["shop", "kiosk"].map((name) => ({ name, hash: createCallerKey(name).entry }));
const secret = "77".repeat(32);

function read(env: Record<string, string>, options: Partial<Options> = {}) {
  const problems: string[] = [];
  const settings = readChannelSettings({
    env,
    inFile: [],
    gasPerHour: undefined,
    keys,
    payTo: undefined,
    ...options,
    tell: (problem) => void problems.push(problem),
  });
  return { settings, problems };
}

type Options = Parameters<typeof readChannelSettings>[0];

describe("the channels of a hosted facilitator", () => {
  it("are off unless a caller has a receiver", () => {
    expect(read({})).toEqual({ settings: undefined, problems: [] });
  });

  it("bind callers to receivers, several to one, by the environment before the file", () => {
    const inFile = [{ name: "shop", receivers: [other] as const }];
    const env = { FACILITATOR_CHANNEL_RECEIVERS: `shop:${seller}, shop:${other},kiosk:${other}` };
    expect(read(env, { inFile, gasPerHour: 7_000_000 })).toEqual({
      problems: [],
      settings: {
        callers: [
          { name: "shop", receivers: [seller, other] },
          { name: "kiosk", receivers: [other] },
        ],
        gasPerHour: 7_000_000n,
      },
    });
    expect(read({}, { inFile }).settings).toEqual({ callers: inFile });
    const signing = { ...env, FACILITATOR_CHANNEL_AUTHORIZER_PRIVATE_KEY: secret };
    const networks = { ...signing, FACILITATOR_CHANNEL_NETWORKS: "eip155:9745" };
    expect(read(networks).settings).toMatchObject({
      authorizer: { privateKey: secret },
      networks: ["eip155:9745"],
    });
  });

  it("name all their problems, and repeat no secret", () => {
    const wrong = {
      FACILITATOR_CHANNEL_RECEIVERS: `shop:${seller},stranger:${other},kiosk,shop:0x12`,
      FACILITATOR_CHANNEL_AUTHORIZER_PRIVATE_KEY: secret.slice(2),
      FACILITATOR_CHANNEL_NETWORKS: "plasma",
    };
    const { problems } = read(wrong, { payTo: [seller] });
    expect(problems).toEqual([
      "FACILITATOR_CHANNEL_NETWORKS: must be networks such as eip155:9745,eip155:988",
      "FACILITATOR_CHANNEL_RECEIVERS: entry 3 must be <caller>:<address>",
      "FACILITATOR_CHANNEL_RECEIVERS: entry 4 must be <caller>:<address>",
      "FACILITATOR_CHANNEL_RECEIVERS: stranger has no key in FACILITATOR_KEYS",
      "FACILITATOR_CHANNEL_RECEIVERS: stranger has a receiver that FACILITATOR_PAY_TO does not allow",
      "FACILITATOR_CHANNEL_AUTHORIZER_PRIVATE_KEY: must be 32 bytes in hex: 64 digits, with or without 0x",
    ]);
    const alone = { FACILITATOR_CHANNEL_AUTHORIZER_PRIVATE_KEY: secret };
    expect(read(alone).problems).toHaveLength(1);
  });
});
