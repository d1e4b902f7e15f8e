import type { Devnet } from "@coinslot/devnet";
import { byDay } from "@coinslot/devnet/effort";
import type { CoinslotFacilitator } from "@coinslot/facilitator";
import { parseAbiItem } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readDocument } from "../../docs/code-block.ts";
import { createTestFacilitator, priceOfWeather } from "../../support/seller.ts";
import { startUsdcDevnet, usdc } from "../../support/usdc-devnet.ts";
import { type Buyer, buyers } from "./buyers.ts";
import { type Shop, shops } from "./shops.ts";

const transfer = parseAbiItem("event Transfer(address indexed from, address indexed to, uint256)");
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

/** One shop for each buyer, another one each time; in a whole run every shop. */
function shopsOf(index: number): readonly Shop[] {
  return byDay(shops.slice(index % shops.length, (index % shops.length) + 1), shops);
}

const cells = buyers.flatMap((buyer, index) =>
  shopsOf(index).map((shop): [string, string, Buyer, Shop] => [buyer.name, shop.name, buyer, shop]),
);

describe("an answer with all three offers", () => {
  it.each(cells)("is bought by %s on %s, with one transfer", async (_buyer, _shop, buyer, shop) => {
    const running = await shop.start(devnet, facilitator);
    try {
      const before = await devnet.client.getBlockNumber();
      const body = await buyer.buy(devnet, `${running.url}/weather`);
      expect(body).toEqual({ forecast: "sun" });
      expect(running.paidBy()).toBe(buyer.wire);
      expect(running.runs()).toBe(1);
      const { buyer: payer, seller } = devnet.accounts;
      const args = { from: payer.address, to: seller.address };
      expect(await transfersSince(before)).toMatchObject([{ ...args, value: priceOfWeather }]);
    } finally {
      await running.close();
    }
  });

  it("is bought by the clients that the documentation lists, on each flow and Express", () => {
    const rows = readDocument("docs/selling.md")
      .split("\n")
      .filter((line) => line.startsWith("|"))
      .map((line) => line.split("|").map((cell) => cell.trim()));
    const heading = rows.findIndex((cells) => shops.every(({ name }) => cells.includes(name)));
    const documented = rows.slice(heading + 2, heading + 2 + buyers.length);
    const bought = shops.map(() => "bought");
    const expected = buyers.map(({ name, wire }) => ["", name, wire, ...bought, ""]);
    expect(documented).toEqual(expected);
  });
});

/** Every movement of the token after a block. */
async function transfersSince(block: bigint) {
  const fromBlock = block + 1n;
  const logs = await devnet.client.getLogs({ address: usdc, event: transfer, fromBlock });
  return logs.map(({ args: [from, to, value] }) => ({ from, to, value }));
}
