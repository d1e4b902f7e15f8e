import type { Devnet } from "@coinslot/devnet";
import type { CoinslotFacilitator } from "@coinslot/facilitator";
import { startInspector, summarise } from "@coinslot/inspector";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createTestFacilitator } from "../support/seller.ts";
import { startUsdcDevnet } from "../support/usdc-devnet.ts";
import { buyers } from "./buyers/buyers.ts";
import { shops } from "./buyers/shops.ts";

let devnet: Devnet;
let facilitator: CoinslotFacilitator;

beforeAll(async () => {
  devnet = await startUsdcDevnet();
  facilitator = createTestFacilitator(devnet);
  await facilitator.ready();
});

afterAll(async () => {
  await facilitator?.close();
  await devnet?.stop();
});

const wires = [
  ["x402-fetch 1.2.0", "x402 v1"],
  ["@x402/fetch 2.27.0", "x402 v2"],
  ["mppx 0.11.0", "MPP"],
] as const;

describe("a released client behind the inspector", () => {
  it.each(wires)("%s buys by %s in one cycle, with nothing to complain of", async (name, wire) => {
    const buyer = buyers.find((each) => each.name === name);
    const shop = await shops[0]?.start(devnet, facilitator);
    if (buyer === undefined || shop === undefined) throw new Error(`There is no ${name}.`);
    onTestFinished(() => shop.close());
    const inspector = await startInspector({ seller: shop.url, rpcUrls: [devnet.rpcUrl] });
    onTestFinished(() => inspector.close());
    expect(await buyer.buy(devnet, `${inspector.proxyUrl}/weather`)).toEqual({ forecast: "sun" });
    await inspector.settled();
    const [cycle, ...more] = inspector.cycles();
    expect(more).toEqual([]);
    const kept = cycle && summarise(cycle);
    expect(kept).toMatchObject({ state: "paid", wire, price: "0.001 USDC", payments: 1 });
    expect(kept?.gasUsed).toMatch(/^\d{5,}$/);
    const paid = cycle?.legs.find(({ payment }) => payment !== undefined)?.payment;
    const signer = paid?.comparisons.find(({ check }) => check === "signer");
    expect(signer?.verdict).toBe("same");
    expect(paid?.comparisons.filter(({ verdict }) => verdict !== "same")).toEqual([]);
  });
});
