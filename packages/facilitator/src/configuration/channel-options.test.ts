import { devSeedPhrase } from "@coinslot/devnet";
import { describe, expect, it } from "vitest";
import { readChannelOptions } from "./channel-options.ts";
import { readRelayer } from "./relayer-account.ts";

const network = "eip155:9745";
const relayer = readRelayer(devSeedPhrase);
const networks = relayer.ok ? [{ network, relayers: relayer.accounts } as const] : [];

describe("options of channels", () => {
  it("are off unless they are given", () => {
    expect(readChannelOptions(undefined, devSeedPhrase, networks)).toEqual({
      settings: undefined,
      problems: [],
    });
  });

  it("derive a key of its own from the relayer's seed phrase", () => {
    const { settings, problems } = readChannelOptions({}, { seedPhrase: devSeedPhrase }, networks);
    expect(problems).toEqual([]);
    const [signer] = settings?.signers ?? [];
    expect(signer?.address).toMatch(/^0x[0-9a-f]{40}$/);
    expect(settings).toMatchObject({
      mostAtRisk: 1_000_000n,
      claimAfterMs: 3_600_000,
      refundLimits: { perSigner: 8, perHour: 60 },
      depositLimits: { perSigner: 200, failedPerPayer: 3 },
      minDepositWorth: 1,
    });
  });

  it.each([
    [{ claimCost: 1_000n }, 5],
    [{ claimCost: 1_000n, minDepositWorth: 2 }, 2],
    [{ minDepositWorth: 3 }, 3],
  ])(
    "options of channels with %o ask for a deposit of %i times its gas",
    (options, minDepositWorth) => {
      const { settings } = readChannelOptions(options, { seedPhrase: devSeedPhrase }, networks);
      expect(settings).toMatchObject({ minDepositWorth });
    },
  );

  it("name all their problems, and repeat no secret", () => {
    const privateKey = `0x${"77".repeat(32)}`;
    const { problems } = readChannelOptions(
      {
        authorizer: { privateKey },
        formerAuthorizers: [{ privateKey }, { privateKey: "0x12" }],
        mostAtRisk: 0n,
        claimCost: -1n,
        claimAfterSeconds: 0,
        claimAtCloseSeconds: -1,
        withdrawDelaySeconds: 60,
        contract: "0x12",
        networks: ["eip155:1"],
        maxRefundsPerSigner: 0,
        maxRefundsPerHour: 1.5,
        maxDepositsPerSigner: 0,
        maxFailedDepositsPerPayer: 0,
        minDepositWorth: 0,
      },
      undefined,
      networks,
    );
    expect(problems).toHaveLength(14);
    expect(problems.join()).not.toContain("77777777");
  });

  it("refuse a relayer's key, and a missing one", () => {
    const own = readChannelOptions({ authorizer: { seedPhrase: devSeedPhrase } }, undefined, [
      { network, relayers: readChannelOptions({}, devSeedPhrase, []).settings?.signers ?? [] },
    ]);
    expect(own.problems).toEqual([expect.stringContaining("is a relayer of eip155:9745")]);
    const none = readChannelOptions({}, `0x${"77".repeat(32)}`, networks);
    expect(none.problems).toEqual([expect.stringContaining("channels.authorizer is not set")]);
  });
});
