import { createPayingFetch } from "@coinslot/client";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import type { CoinslotFacilitator } from "@coinslot/facilitator";
import { parseEther } from "viem";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { balanceOf } from "../support/balance.ts";
import {
  createTestFacilitator,
  priceOfWeather,
  type Seller,
  startSeller,
} from "../support/seller.ts";

let devnet: Devnet;
let facilitator: CoinslotFacilitator;
let seller: Seller;

beforeAll(async () => {
  devnet = await startDevnet({ chainId: 9745 });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
  facilitator = createTestFacilitator(devnet);
  await facilitator.ready();
  seller = await startSeller({ devnet, facilitator });
});

afterAll(async () => {
  await seller?.close();
  await facilitator?.close();
  await devnet?.stop();
});

function setGasMoney(value: bigint): Promise<void> {
  return devnet.client.setBalance({ address: devnet.accounts.relayer.address, value });
}

it("a seller whose relayer runs out of gas money answers 503 before the handler runs, and sells again when it has some", async () => {
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
  await vi.waitFor(() => expect(statuses).toEqual([402, 503]), 10_000);
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
