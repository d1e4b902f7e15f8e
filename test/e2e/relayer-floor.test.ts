import { createPayingFetch } from "@coinslot/client";
import { parseEther } from "viem";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { balanceOf } from "../support/balance.ts";
import { openWeatherShop, priceOfWeather, type WeatherShop } from "../support/seller.ts";

let shop: WeatherShop;

beforeAll(async () => {
  shop = await openWeatherShop();
});

afterAll(() => shop?.close());

function setGasMoney(value: bigint): Promise<void> {
  const { devnet } = shop;
  return devnet.client.setBalance({ address: devnet.accounts.relayer.address, value });
}

it("a seller with a relayer out of gas money answers 503 before the handler runs, and sells again after a refill", async () => {
  const { devnet, facilitator, seller } = shop;
  const events: string[] = [];
  facilitator.onEvent(({ type }) => events.push(type));
  const statuses: number[] = [];
  const watched: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    statuses.push(answer.status);
    return answer;
  };
  const rpcUrls = { [devnet.network]: devnet.rpcUrl };
  const account = devnet.accounts.buyer;
  const pay = createPayingFetch({ account, rpcUrls });
  const payWatched = createPayingFetch({ account, rpcUrls, fetch: watched });

  // The last one that is let in finds out, when its transaction is refused; it waits for the money.
  await setGasMoney(0n);
  const waiting = pay(`${seller.url}/weather`);
  await vi.waitFor(() => expect(events).toContain("relayer_funds_exhausted"), 20_000);
  expect(seller.runs()).toBe(1);

  const retried = payWatched(`${seller.url}/weather`);
  await vi.waitFor(() => expect(statuses).toEqual([402, 503]), 20_000);
  expect(seller.runs()).toBe(1);
  expect(await balanceOf(devnet, devnet.accounts.seller.address)).toBe(0n);

  // The buyer's client asks again with the same payment, and both get what they pay for, once.
  await setGasMoney(parseEther("1"));
  expect((await waiting).status).toBe(200);
  expect((await retried).status).toBe(200);
  expect(statuses.every((status, index) => index === 0 || [503, 200].includes(status))).toBe(true);
  expect(seller.runs()).toBe(2);
  expect(await balanceOf(devnet, devnet.accounts.seller.address)).toBe(2n * priceOfWeather);
});
