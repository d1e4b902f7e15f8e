import { chainIdOf, knownChains } from "@coinslot/protocol";
import type { Chain } from "viem";
import * as viemChains from "viem/chains";
import { describe, expect, it } from "vitest";
import { getChainPreset } from "./index.ts";

describe("a chain preset", () => {
  const listed = new Map<number, Chain>(
    Object.values(viemChains).map((chain) => [chain.id, chain]),
  );

  it.each(knownChains.map((chain) => [chain.name, chain] as const))(
    "agrees with viem's list about %s",
    (name, { network, ...known }) => {
      const chainId = chainIdOf(network);
      const chain = listed.get(chainId);
      expect(getChainPreset(chainId)).toMatchObject({
        chainId,
        name,
        nativeCurrency: known.nativeCurrency,
      });
      expect(chain?.name.startsWith(name)).toBe(true);
      expect(chain?.nativeCurrency).toEqual(known.nativeCurrency);
      expect(chain?.contracts).toMatchObject({
        multicall3: { address: expect.stringMatching(new RegExp(`^${known.multicall3}$`, "i")) },
      });
      expect(known.explorerUrl).toBe(chain?.blockExplorers?.default.url.replace(/\/$/, ""));
      const { blockTime } = { blockTime: undefined, ...chain };
      if (blockTime !== undefined) expect(known.blockTimeMs).toBe(blockTime);
    },
  );

  it("is conservative for an unknown chain", () => {
    expect(getChainPreset(424242)).toMatchObject({
      chainId: 424242,
      blockTimeMs: undefined,
      multicall3: undefined,
      finality: { finalizedTag: false, depth: 64 },
      feeModel: "detect",
    });
  });
});
