import { type Offer, plasma, plasmaUsdt0, stable, stableUsdt0 } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { type BudgetAsset, readBudget } from "../budget/spending-policy.ts";
import { requirements } from "../testing/seller.ts";
import { waysOf } from "../wires/x402/x402.ts";
import { chooseRequirements } from "./choose-requirements.ts";

const points: BudgetAsset = {
  network: plasma,
  address: "0x00000000000000000000000000000000000000aa",
  name: "Points",
  version: "1",
  decimals: 0,
  limits: { perPayment: 100n, perHost: 100n, perDay: 100n },
};
const onPlasma = { network: plasma, ...plasmaUsdt0 };
const onStable = { network: stable, ...stableUsdt0 };

function choose(assets: BudgetAsset[], changes: Parameters<typeof requirements>[0][]) {
  const accepts = changes.map((change) => {
    const accepted = { ...requirements({ extra: {} }), ...change };
    return { x402Version: 2, requirements: accepted, accepted } as const;
  });
  const offer: Offer = { x402Version: 2, accepts };
  const networks = new Set([plasma, stable]);
  const ways = waysOf(offer);
  return chooseRequirements({
    ways,
    protocols: ["x402", "mpp"],
    assets: readBudget({ assets }, []),
    networks,
  });
}

function order(assets: BudgetAsset[], changes: Parameters<typeof requirements>[0][]): string[] {
  return choose(assets, changes).candidates.map(
    ({ asset, amount }) => `${amount} ${asset.network} ${asset.name}`,
  );
}

const stableFor = (amount: string) => ({ network: stable, asset: stableUsdt0.address, amount });
const pointsFor = (amount: string) => ({ asset: points.address, amount });

describe("the choice among offered payments", () => {
  it("prefers the cheapest in dollars, then the budget's first asset", () => {
    const offered = [{ amount: "500" }, stableFor("400"), { amount: "400" }];
    expect(order([onPlasma, onStable], offered)).toEqual([
      "400 eip155:9745 USDT0",
      "400 eip155:988 USDT0",
      "500 eip155:9745 USDT0",
    ]);
    expect(order([onStable, onPlasma], offered)[0]).toBe("400 eip155:988 USDT0");
  });

  it("keeps a token with its own limits at its place in the budget, at any price", () => {
    const offered = [{ amount: "1" }, pointsFor("90"), stableFor("2")];
    expect(order([points, onPlasma, onStable], offered)[0]).toBe("90 eip155:9745 Points");
    expect(order([onPlasma, points, onStable], offered)).toEqual([
      "1 eip155:9745 USDT0",
      "2 eip155:988 USDT0",
      "90 eip155:9745 Points",
    ]);
  });

  it("treats a free entry as a candidate like any other", () => {
    expect(order([onPlasma], [{ amount: "0" }])).toEqual(["0 eip155:9745 USDT0"]);
  });

  it("takes known settlement flows only", () => {
    const flows = [undefined, null, "authorization", "upfront", "escrow", "", 7, ["upfront"]];
    const offered = flows.map((paymentFlow) => ({ extra: { paymentFlow } }));
    const { candidates, refusals } = choose([onPlasma], offered);
    expect(candidates).toHaveLength(4);
    expect(refusals.map(({ code }) => code)).toEqual(Array(4).fill("unsupported_offer"));
    expect(refusals[0]?.message).toBe(
      "Only the payment flows authorization and upfront are paid, and the offer has another",
    );
  });

  it("refuses an entry that contradicts the known token, also in its type", () => {
    const wrong = [
      { extra: { decimals: "6" } },
      { extra: { name: null } },
      { extra: { version: 1 } },
      { extra: { assetTransferMethod: 7 } },
    ];
    const { candidates, refusals } = choose([onPlasma], wrong);
    expect(candidates).toEqual([]);
    expect(refusals.map(({ code }) => code)).toEqual([
      "asset_mismatch",
      "asset_mismatch",
      "asset_mismatch",
      "unsupported_offer",
    ]);
  });
});
