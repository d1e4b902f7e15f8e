import { type Devnet, startDevnet } from "@coinslot/devnet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { balanceOf } from "../../support/balance.ts";
import { priceOfWeather } from "../../support/seller.ts";
import { type Cell, cells } from "./cells.ts";

let devnet: Devnet;

beforeAll(async () => {
  // The legacy packages know a network by its name alone.
  devnet = await startDevnet({ chainId: 84532 });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 100_000_000n });
});

afterAll(async () => {
  await devnet?.stop();
});

describe("the interoperability matrix", () => {
  const titled = cells.map((cell) => {
    const { client, seller, facilitator, buys } = cell;
    const verb = buys ? "buys from" : "pays nothing to";
    return [`${client.name} ${verb} ${seller.name} with ${facilitator.name}`, cell] as const;
  });

  it.each(titled)("%s", async (_title, cell) => {
    const { outcome, paid } = await visit(cell);
    if (cell.buys) {
      expect(outcome).toEqual({ status: 200, body: { forecast: "sun" } });
      expect(paid).toBe(priceOfWeather);
    } else {
      expect(outcome).not.toMatchObject({ status: 200 });
      expect(paid).toBe(0n);
    }
  });
});

async function visit({ client, seller, facilitator }: Cell) {
  const running = await facilitator.start(devnet);
  const shop = await seller.start(devnet, running);
  const { address } = devnet.accounts.seller;
  try {
    const before = await balanceOf(devnet, address);
    const outcome = await client.buy(devnet, `${shop.url}/weather`).catch((error: unknown) => {
      return { status: 0, body: error };
    });
    return { outcome, paid: (await balanceOf(devnet, address)) - before };
  } finally {
    await shop.close();
    await running.close();
  }
}
