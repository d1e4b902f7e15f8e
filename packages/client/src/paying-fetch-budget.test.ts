import { startDevnet } from "@coinslot/devnet";
import { plasma, stable, stableUsdt0 } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import type { SignedPayment } from "./sign/signed-payment.ts";
import { countSignatures } from "./testing/counting-account.ts";
import { requirements, startSeller } from "./testing/seller.ts";
import { useWorld } from "./testing/world.ts";

const world = useWorld();
const { keep, createFetch, refusalOf } = world;

describe("the budget of a paying fetch", () => {
  it("counts per host, over all its ports, and names the limit", async () => {
    const first = keep(await startSeller({ accepts: () => [requirements({ amount: "100000" })] }));
    const second = keep(await startSeller());
    const pay = createFetch({ budget: { perHost: "$0.20" } });
    await pay(first.url);
    await pay(first.url);
    const error = await pay(second.url).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "over_budget" });
    expect(String(error)).toContain("for one host in a day: $0.2");
    // The same machine under another name counts as another host.
    const other = second.url.replace("127.0.0.1", "localhost");
    expect((await pay(other)).status).toBe(200);
    expect(world.account().signatures()).toBe(3);
  });

  it("counts per day over all hosts and both networks, and resets after a day", async () => {
    const stableNet = await startDevnet({ chainId: 988 });
    try {
      await stableNet.mint({ to: world.account().address, amount: 1_000_000n });
      const onPlasma = keep(
        await startSeller({ accepts: () => [requirements({ amount: "60000" })] }),
      );
      const onStable = keep(
        await startSeller({
          accepts: () => [
            requirements({ network: stable, asset: stableUsdt0.address, amount: "60000" }),
          ],
        }),
      );
      let now = Number((await stableNet.client.getBlock()).timestamp) * 1000;
      const pass = async (hours: number) => {
        now += hours * 3_600_000;
        const timestamp = BigInt(Math.floor(now / 1000));
        await stableNet.client.setNextBlockTimestamp({ timestamp });
        await stableNet.client.mine({ blocks: 1 });
      };
      const pay = createFetch({
        now: () => now,
        budget: { perDay: "$0.10" },
        rpcUrls: { [plasma]: world.devnet().rpcUrl, [stable]: stableNet.rpcUrl },
      });
      await pay(onPlasma.url);
      await pass(23);
      await expect(pay(onStable.url.replace("127.0.0.1", "localhost"))).rejects.toMatchObject({
        code: "over_budget",
      });
      // A payment counts by whole hours, from the last one in which it could be made.
      await pass(3);
      expect((await pay(onStable.url)).status).toBe(200);
    } finally {
      await stableNet.stop();
    }
  });

  it("cannot be overspent by parallel requests", async () => {
    const seller = keep(await startSeller({ accepts: () => [requirements({ amount: "30000" })] }));
    const pay = createFetch({ budget: { perDay: "$0.10" } });
    const calls = await Promise.allSettled(Array.from({ length: 10 }, () => pay(seller.url)));
    expect(calls.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
    expect(world.account().signatures()).toBe(3);
    for (const call of calls) {
      if (call.status === "rejected") expect(call.reason).toMatchObject({ code: "over_budget" });
    }
  });

  it("holds a payment that may have been kept, although keeping it failed and it was not sent", async () => {
    const seller = keep(await startSeller({ accepts: () => [requirements({ amount: "60000" })] }));
    const kept: SignedPayment[] = [];
    const pay = createFetch({
      budget: { perDay: "$0.10" },
      beforeSend(payment) {
        kept.push(payment);
        throw new Error("The disk is full");
      },
    });
    await expect(pay(seller.url)).rejects.toThrow("The disk is full");
    expect(seller.paid).toHaveLength(0);
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });
    expect(kept).toHaveLength(1);
  });

  it("spends a token by its own limits and decimals", async () => {
    const { devnet } = world;
    const token = await devnet().deployToken({ name: "Points", version: "3", decimals: 2 });
    await devnet().mint({ to: world.account().address, amount: 1000n, token });
    const points = { address: token, name: "Points", version: "3", decimals: 2 };
    const limits = { perPayment: 50n, perHost: 120n, perDay: 120n };
    const pay = createFetch({ budget: { assets: [{ network: plasma, ...points, limits }] } });
    const sellFor = async (amount: string, decimals: number) => {
      const extra = { name: "Points", version: "3", decimals };
      const accepts = () => [requirements({ asset: token, amount, extra })];
      return keep(await startSeller({ accepts })).url;
    };
    await expect(pay(await sellFor("51", 2))).rejects.toMatchObject({ code: "over_budget" });
    await expect(pay(await sellFor("50", 6))).rejects.toMatchObject({ code: "asset_mismatch" });
    expect((await pay(await sellFor("50", 2))).status).toBe(200);
    expect((await pay(await sellFor("50", 2))).status).toBe(200);
    await expect(pay(await sellFor("50", 2))).rejects.toMatchObject({ code: "over_budget" });
    // A list of assets replaces the default list.
    const usdt0 = keep(await startSeller());
    await expect(pay(usdt0.url)).rejects.toMatchObject({ code: "unknown_asset" });
  });

  it("is freed when the account does not sign", async () => {
    const seller = keep(await startSeller({ accepts: () => [requirements({ amount: "100000" })] }));
    let isLocked = true;
    const account = countSignatures(world.devnet().accounts.buyer, async () => {
      if (isLocked) throw new Error("The wallet is locked");
    });
    const pay = createFetch({ account, budget: { perDay: "$0.10" } });
    const error = await refusalOf(pay(seller.url), seller);
    expect(error).toMatchObject({
      code: "signing_failed",
      cause: { message: "The wallet is locked" },
    });
    isLocked = false;
    expect((await pay(seller.url)).status).toBe(200);
    expect(world.states()).toEqual(["booked", "released", "booked", "signed", "sent", "settled"]);
  });

  it("is freed when signing takes longer than the seller waits for a payment", async () => {
    const seller = keep(await startSeller());
    let now = Date.parse("2026-01-01T00:00:00Z");
    const account = countSignatures(world.devnet().accounts.buyer, async () => {
      now += 300_000;
    });
    const call = createFetch({ account, now: () => now })(seller.url);
    await expect(call).rejects.toMatchObject({ code: "signing_failed", moneyMayHaveMoved: false });
    expect(seller.paid).toHaveLength(0);
    expect(world.states()).toEqual(["booked", "released"]);
  });

  it("is freed when the members to repeat are too long for a header", async () => {
    const offer = { extensions: { novel: "x".repeat(7000) } };
    const seller = keep(await startSeller({ offer }));
    await expect(createFetch()(seller.url)).rejects.toMatchObject({ code: "payment_too_large" });
    expect(seller.paid).toHaveLength(0);
    expect(world.states()).toEqual(["booked", "released"]);
  });
});
