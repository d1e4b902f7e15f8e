import { plasma, stable } from "viem/chains";
import { describe, expect, it } from "vitest";
import { chainPresets, getChainPreset } from "./index.ts";

describe("chain presets", () => {
  for (const [preset, chain] of [
    [chainPresets.plasma, plasma],
    [chainPresets.stable, stable],
  ] as const)
    it(`agree with viem's list about ${preset.name}`, () => {
      expect(preset).toMatchObject({
        chainId: chain.id,
        nativeCurrency: chain.nativeCurrency,
        blockTimeMs: chain.blockTime,
        multicall3: chain.contracts.multicall3.address,
      });
    });

  it("are found by chain id", () => {
    expect(getChainPreset(988)).toBe(chainPresets.stable);
  });

  it("assume little about a chain that is not known", () => {
    expect(getChainPreset(424242)).toMatchObject({
      chainId: 424242,
      blockTimeMs: undefined,
      multicall3: undefined,
      finality: { finalizedTag: false, depth: 64 },
      feeModel: "detect",
    });
  });
});
