import { plasmaUsdt0 } from "@coinslot/protocol";
import { evm, Mppx } from "mppx/client";
import { afterEach, describe, expect, it } from "vitest";
import { createBuyer } from "../../testing/buyer.ts";
import { open, opened } from "../../testing/mpp-scene.ts";

afterEach(async () => {
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

describe("the reference's client", () => {
  it("buys from a route with all three offers, and signs once", async () => {
    const shop = await open();
    const { account } = createBuyer();
    const client = Mppx.create({
      polyfill: false,
      methods: [evm.charge({ account, authorization: plasmaUsdt0 })],
    });
    const signed: string[] = [];
    client.onCredentialCreated(({ credential }) => void signed.push(credential));
    const answer = await client.fetch(`${shop.url}/paid`);
    expect(answer.status).toBe(200);
    expect(signed).toHaveLength(1);
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  it("buys twenty times at once with one wallet, and signs once for each", async () => {
    const shop = await open();
    const { account } = createBuyer();
    const client = Mppx.create({
      polyfill: false,
      methods: [evm.charge({ account, authorization: plasmaUsdt0 })],
    });
    const signed: string[] = [];
    client.onCredentialCreated(({ credential }) => void signed.push(credential));
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => client.fetch(`${shop.url}/paid`)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(signed).toHaveLength(20);
    expect(shop.facilitator.settled).toHaveLength(20);
  });

  it("signs once where the outcome is not known", async () => {
    const shop = await open();
    shop.facilitator.onSettle = () => Promise.reject(new Error("down"));
    const { account } = createBuyer();
    const client = Mppx.create({
      polyfill: false,
      methods: [evm.charge({ account, authorization: plasmaUsdt0 })],
    });
    const signed: string[] = [];
    client.onCredentialCreated(({ credential }) => void signed.push(credential));
    expect((await client.fetch(`${shop.url}/paid`)).status).toBe(503);
    expect(signed).toHaveLength(1);
  });
});
