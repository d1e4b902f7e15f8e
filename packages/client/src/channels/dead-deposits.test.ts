import { readFile } from "node:fs/promises";
import { plasma } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { budgetStateSchema } from "../budget/budget-state.ts";
import type { PayingFetch } from "../index.ts";
import { useChannels } from "../testing/use-channels.ts";

const { world, inFolder, sellerOf, createFetch, records } = useChannels();

async function openBookings() {
  const text = await readFile(inFolder("budget.json"), "utf8");
  return budgetStateSchema.parse(JSON.parse(text)).open;
}

describe("a deposit that its seller never executes", () => {
  it.each<[string, (pay: PayingFetch, url: string, id: `0x${string}`) => Promise<unknown>]>([
    ["a refund", async (pay, url) => (await pay.refundChannel(url))[0]],
    ["a withdrawal", (pay, _url, id) => pay.withdrawChannel(id)],
  ])("keeps no room in the budget once it has expired and %s is asked for", async (_name, ask) => {
    const seller = await sellerOf({
      onPaid: (_paid, response) => {
        response.writeHead(402).end("{}");
        return true;
      },
    });
    let now = Date.now();
    const budget = { perDay: "$0.001", file: inFolder("budget.json") };
    const pay = createFetch({}, { budget, now: () => now });
    expect((await pay(seller.url)).status).toBe(402);
    const [{ id = "0x", deposit } = {}] = await records();
    const depositUntil = deposit?.validBefore;
    expect(depositUntil).toBeGreaterThan(0);
    expect(await ask(pay, seller.url, id)).toMatchObject({ state: "nothing", depositUntil });
    expect(await openBookings()).toMatchObject([{ id: { nonce: id } }]);

    const snapshot = await world.devnet().snapshot();
    now += 700_000;
    await world.devnet().client.setNextBlockTimestamp({ timestamp: BigInt(now) / 1000n });
    await world.devnet().mine();
    const ended = await ask(pay, seller.url, id);
    expect(ended).toMatchObject({ state: "nothing" });
    expect(ended).not.toHaveProperty("depositUntil");
    expect(await openBookings()).toEqual([]);
    await world.devnet().revert(snapshot);
  });

  it("keeps no room that the next purchase needs, by two hosts", async () => {
    const silent = await sellerOf({
      onPaid: (_paid, response) => {
        response.writeHead(402).end("{}");
        return true;
      },
    });
    const honest = await sellerOf();
    let now = Date.now();
    const { rpcUrl } = world.devnet();
    const rpcUrls = { [plasma]: [rpcUrl, rpcUrl.replace("127.0.0.1", "localhost")] };
    const budget = { perDay: "$0.001", file: inFolder("budget.json") };
    const pay = createFetch({}, { budget, rpcUrls, now: () => now });
    expect((await pay(silent.url)).status).toBe(402);
    await expect(pay(honest.url)).rejects.toMatchObject({ code: "over_budget" });

    const snapshot = await world.devnet().snapshot();
    now += 1_300_000;
    await world.devnet().client.setNextBlockTimestamp({ timestamp: BigInt(now) / 1000n });
    await world.devnet().mine();
    expect((await pay(honest.url)).status).toBe(200);
    expect(await openBookings()).toEqual([]);
    const [dead] = (await records()).filter(({ origin }) => origin === new URL(silent.url).origin);
    expect(dead?.deposit).toBeUndefined();
    await world.devnet().revert(snapshot);
  });
});

describe("a deposit that was booked", () => {
  it("keeps no room where its payment is too large to be sent", async () => {
    const seller = await sellerOf({ extra: () => ({ padding: "x".repeat(7000) }) });
    const pay = createFetch({}, { budget: { file: inFolder("budget.json") } });
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "payment_too_large" });
    expect(seller.paid).toEqual([]);
    expect((await records())[0]?.deposit).toBeUndefined();
    expect(await openBookings()).toEqual([]);
  });

  it("keeps no room where it expires within the call, by two hosts", async () => {
    const { rpcUrl, client, mine, snapshot, revert } = world.devnet();
    const before = await snapshot();
    let now = Date.now();
    const seller = await sellerOf({
      onPaid: async (_paid, response) => {
        now += 700_000;
        await client.setNextBlockTimestamp({ timestamp: BigInt(now) / 1000n });
        await mine();
        response.writeHead(402).end("{}");
        return true;
      },
    });
    const rpcUrls = { [plasma]: [rpcUrl, rpcUrl.replace("127.0.0.1", "localhost")] };
    const budget = { file: inFolder("budget.json") };
    const pay = createFetch({}, { budget, rpcUrls, now: () => now });
    expect((await pay(seller.url)).status).toBe(402);
    expect((await records())[0]?.deposit).toBeUndefined();
    expect(await openBookings()).toEqual([]);
    await revert(before);
  });
});
