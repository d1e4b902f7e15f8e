import { knownChains } from "@coinslot/protocol";
import * as chains from "viem/chains";
import { expect, it } from "vitest";
import { explorers } from "./explorers.ts";

/** Block explorers as viem knows them. */
const known = new Map<string, string>(
  Object.values(chains).flatMap((chain) => {
    if (typeof chain !== "object" || !("id" in chain)) return [];
    const url = chain.blockExplorers?.default.url;
    return url === undefined ? [] : [[`eip155:${chain.id}`, url.replace(/\/$/, "")] as const];
  }),
);

it.each(Object.entries(explorers))("of %s is the one that viem knows: %s", (network, explorer) => {
  const url = new URL(explorer);
  expect(url.protocol).toBe("https:");
  expect(url.origin).toBe(explorer);
  expect(explorer).toBe(known.get(network));
});

it("are those of every chain that we know, but of local ones", () => {
  const lacking = knownChains.filter(({ network }) => explorers[network] === undefined);
  expect(lacking.filter(({ network }) => known.has(network))).toEqual([]);
});
