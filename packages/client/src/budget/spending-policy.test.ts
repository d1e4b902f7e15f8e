import { knownChains, plasma, plasmaUsdt0, stable } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import {
  type Budget,
  type BudgetAsset,
  findAsset,
  inBucket,
  readBudget,
} from "./spending-policy.ts";

const cent = 10n ** 16n;

function read(budget: Budget) {
  const problems: string[] = [];
  return { assets: readBudget(budget, problems), problems };
}

const usdc: BudgetAsset = {
  network: "eip155:4242",
  address: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
  name: "USD Coin",
  version: "2",
  decimals: 6,
};

describe("a spending policy", () => {
  it("allows ten cents a payment, a dollar a host, five a day without limits", () => {
    const { assets, problems } = read({});
    expect(problems).toEqual([]);
    expect(assets.map(({ network, address }) => [network, address])).toEqual(
      knownChains
        .filter(({ isTestnet }) => !isTestnet)
        .map(({ network, tokens: [token] }) => [network, token.address]),
    );
    expect(assets[0]).toMatchObject({ network: plasma, address: plasmaUsdt0.address });
    const limits = { perPayment: 10n * cent, perHost: 100n * cent, perDay: 500n * cent };
    for (const { pot } of assets) expect(pot).toEqual({ name: "usd", decimals: 18, limits });
  });

  it("needs no other change with one tightened limit", () => {
    const limits = read({ perDay: "$0.05" }).assets[0]?.pot.limits;
    expect(limits).toEqual({ perPayment: 5n * cent, perHost: 5n * cent, perDay: 5n * cent });
    expect(read({ perHost: "$0.02" }).assets[0]?.pot.limits.perPayment).toBe(2n * cent);
  });

  it("needs every larger bound loosened too with one loosened limit", () => {
    expect(read({ perPayment: "$2" }).problems).toEqual([
      "budget.perPayment $2 is above perHost $1",
    ]);
    expect(read({ perPayment: "$2", perHost: "$10" }).problems).toEqual([
      "budget.perHost $10 is above perDay $5",
    ]);
    expect(read({ perPayment: "$2", perHost: "$10", perDay: "$10" }).problems).toEqual([]);
  });

  it("counts dollar stablecoins together, and a token with its own limits alone", () => {
    const limits = { perPayment: 1n, perHost: 2n, perDay: 3n };
    const known = { network: plasma, ...plasmaUsdt0 };
    const { assets, problems } = read({
      assets: [known, { ...usdc, isDollar: true }, { ...usdc, network: "eip155:4243", limits }],
    });
    expect(problems).toEqual([]);
    expect(assets[0]?.pot).toBe(assets[1]?.pot);
    expect(assets[2]?.pot).toEqual({
      name: "eip155:4243/0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
      decimals: 6,
      limits,
    });
    const [first, second] = assets;
    if (!first || !second) throw new Error("Two assets were given");
    expect(inBucket(first, 1_000_000n)).toBe(100n * cent);
    expect(findAsset(assets, plasma, `0x${plasmaUsdt0.address.slice(2).toLowerCase()}`)).toBe(
      first,
    );
    expect(findAsset(assets, stable, plasmaUsdt0.address)).toBeUndefined();
  });

  it("reports all its faults at once", () => {
    const wrong: BudgetAsset = { ...usdc, network: `eip155:${0}`, address: "0x12", decimals: 1.5 };
    const negative = { perPayment: -1n, perHost: 0n, perDay: 0n };
    const { problems } = read({
      perPayment: "0.10",
      perHost: "$-1",
      perDay: "$0.0000000000000000001",
      assets: [
        wrong,
        { network: plasma, ...plasmaUsdt0, decimals: 18 },
        { ...usdc, isDollar: true, limits: negative },
      ],
    });
    expect(problems).toEqual([
      'budget.perPayment is not an amount such as "$0.10"',
      'budget.perHost is not an amount such as "$0.10"',
      'budget.perDay is not an amount such as "$0.10"',
      "budget.assets[0].network is not eip155:<chain id>",
      "budget.assets[0].address is not a valid address",
      "budget.assets[0].decimals is not an integer from 0 to 255",
      "budget.assets[0] needs limits of its own, or isDollar: true if it is a dollar stablecoin",
      "budget.assets[1].decimals is known to be 6",
      "budget.assets[2] has both isDollar and limits",
      "budget.assets[2].limits.perPayment must be a bigint, not negative",
    ]);
  });

  it("limits that are missing, or numbers, are refused: compared with them, no amount is too much", () => {
    const limits = { perPayment: Number.NaN, perHost: 5, locked: { perHost: 1 } };
    const { problems } = read({ assets: [{ ...usdc, limits: Object.assign(limits) }] });
    const limit = "budget.assets[0].limits";
    expect(problems).toEqual(
      ["perPayment", "perHost", "perDay", "locked.perHost", "locked.inAll"].map(
        (name) => `${limit}.${name} must be a bigint, not negative`,
      ),
    );
  });
});
