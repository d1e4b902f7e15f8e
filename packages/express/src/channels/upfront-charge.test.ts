import { request as httpRequest } from "node:http";
import { headerName } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { channelSceneForEachTest, deferredResponse } from "../testing/channel-scene.ts";
import { channelReceiptOf } from "../testing/channel-shop.ts";
import { neverClose } from "../testing/shop.ts";

const scene = channelSceneForEachTest();

describe("a route that charges in advance", () => {
  const route = { paymentFlow: "upfront" };

  it("streams, and is charged what its handler has charged", async () => {
    const { buy, shop, channelId } = await scene.open(
      (request, response) => {
        const { payment } = request;
        if (payment?.scheme !== "batch-settlement") return;
        for (let part = 0; part < 3; part += 1) if (payment.charge(100n)) response.write(`${part}`);
        response.end();
      },
      { route },
    );
    expect(await (await buy(1_000n)).text()).toBe("012");
    expect(await shop.chargedOf(channelId)).toBe(300n);
    expect((await buy(1_300n)).status).toBe(200);
  });

  it("ends its stream cleanly at the maximum", async () => {
    let last: boolean | undefined;
    const { buy, shop, channelId } = await scene.open(
      (request, response) => {
        const { payment } = request;
        if (payment?.scheme !== "batch-settlement") return;
        for (let part = 0; part < 9; part += 1) {
          last = payment.charge(300n);
          response.write(`${part}`);
        }
        response.end();
      },
      { route },
    );
    expect(await (await buy(1_000n)).text()).toBe("012");
    expect(last).toBe(false);
    expect(await shop.chargedOf(channelId)).toBe(900n);
    expect(shop.errors).toEqual([]);
  });

  it("runs once where its maximum ends an answer below its length", async () => {
    const { send, buyer, offer, shop, channelId } = await scene.open(
      (request, response) => {
        const { payment } = request;
        if (payment?.scheme !== "batch-settlement") return;
        scene.runs += 1;
        response.setHeader("Content-Length", 3);
        for (let part = 0; part < 3; part += 1) if (payment.charge(500n)) response.write(`${part}`);
        response.end();
      },
      { route },
    );
    const headers = await buyer.pay(offer, 1_000n);
    const lost = new AbortController();
    const { body } = await send(headers, { signal: lost.signal });
    expect((await send(headers)).status).toBe(402);
    expect(scene.runs).toBe(1);
    expect(await shop.chargedOf(channelId)).toBe(1_000n);
    lost.abort();
    await body?.cancel().catch(() => undefined);
  });

  it("takes the charge back where its handler fails, and keeps it where it does not say less", async () => {
    let isBroken = true;
    const { buy, shop, channelId } = await scene.open(
      (_request, response) => {
        if (isBroken) response.status(500).end("broken");
        else response.end("fine");
      },
      { route },
    );
    const failed = await buy(1_000n);
    expect(failed.status).toBe(500);
    expect(failed.headers.has(headerName.paymentResponse)).toBe(false);
    expect(await shop.chargedOf(channelId)).toBe(0n);
    isBroken = false;
    expect(channelReceiptOf(await buy(1_000n))).toMatchObject({ chargedAmount: 1_000n });
    expect(await shop.chargedOf(channelId)).toBe(1_000n);
  });

  it("lets no signer run failing handlers without end", async () => {
    const { buy } = await scene.open(
      (_request, response) => {
        scene.runs += 1;
        response.status(404).end();
      },
      { route },
    );
    for (let count = 0; count < 20; count += 1) await buy(1_000n);
    expect((await buy(1_000n)).status).toBe(429);
    expect(scene.runs).toBe(20);
  });

  it("keeps the charge of a buyer that leaves before the answer, and has the answer for it", async () => {
    const { response: begun, resolve: begin } = deferredResponse();
    const { buy, buyer, offer, send, url, shop, channelId } = await scene.open(
      (_request, response) => {
        scene.runs += 1;
        if (scene.runs === 1) begin(response);
        else response.send(`answer ${scene.runs}`);
      },
      { route, method: "POST" },
    );
    const headers = await buyer.pay(offer, 1_000n);
    const left = httpRequest(url, { method: "POST", headers });
    left.on("error", () => undefined);
    left.end();
    await begun;
    left.destroy();
    // It waits for the channel, which the first request has until its buyer is seen to have left.
    expect((await buy(1_000n, { body: "another" })).status).toBe(402);
    expect(await (await send(headers)).text()).toBe("answer 2");
    expect(await shop.chargedOf(channelId)).toBe(1_000n);
  });

  it("takes the charge back where its handler destroys an answer that has not begun", async () => {
    const { buy, shop, channelId } = await scene.open(
      (_request, response) => {
        scene.runs += 1;
        if (scene.runs === 1) response.destroy();
        else response.send("fine");
      },
      { route },
    );
    await expect(buy(1_000n)).rejects.toThrow();
    expect((await buy(1_000n)).status).toBe(200);
    expect(scene.runs).toBe(2);
    expect(await shop.chargedOf(channelId)).toBe(1_000n);
  });

  it.each([
    { begin: "", ceiling: 1_000 },
    { begin: "half", ceiling: 2_000 },
  ])(
    "frees its channel where its handler destroys %j on a response that never closes",
    async ({ begin, ceiling }) => {
      const { send, buyer, offer, buy, shop, channelId } = await scene.open(
        (_request, response) => {
          scene.runs += 1;
          if (scene.runs > 1) return void response.send("fine");
          if (begin !== "") response.write(begin);
          response.destroy();
        },
        { route, before: (app) => app.use(neverClose) },
      );
      const lost = new AbortController();
      const left = send(await buyer.pay(offer, 1_000n), { signal: lost.signal })
        .then((answer) => answer.text())
        .catch((error: unknown) => error);
      await expect.poll(() => scene.runs).toBe(1);
      expect((await buy(BigInt(ceiling))).status).toBe(200);
      expect(await shop.chargedOf(channelId)).toBe(BigInt(ceiling));
      lost.abort();
      expect(await left).toBeInstanceOf(Error);
    },
  );

  it("frees its channel where its handler throws in the middle of an answer that never closes", async () => {
    const { send, buyer, offer, buy, shop, channelId } = await scene.open(
      (_request, response) => {
        scene.runs += 1;
        if (scene.runs > 1) return void response.send("fine");
        response.write("half");
        throw new Error("broken");
      },
      { route, before: (app) => app.set("env", "test").use(neverClose) },
    );
    const lost = new AbortController();
    const left = send(await buyer.pay(offer, 1_000n), { signal: lost.signal })
      .then((answer) => answer.text())
      .catch((error: unknown) => error);
    await expect.poll(() => scene.runs).toBe(1);
    expect((await buy(2_000n)).status).toBe(200);
    expect(await shop.chargedOf(channelId)).toBe(2_000n);
    lost.abort();
    expect(await left).toBeInstanceOf(Error);
  });

  it("has the whole answer for the same request where its handler ended it below its length", async () => {
    const { send, buyer, offer, shop, channelId } = await scene.open(
      (_request, response) => {
        scene.runs += 1;
        response.setHeader("Content-Length", 5);
        response.end(scene.runs === 1 ? "ha" : "whole");
      },
      { route },
    );
    const headers = await buyer.pay(offer, 1_000n);
    const lost = new AbortController();
    const { body } = await send(headers, { signal: lost.signal });
    expect(await (await send(headers)).text()).toBe("whole");
    expect(await shop.chargedOf(channelId)).toBe(1_000n);
    lost.abort();
    await body?.cancel().catch(() => undefined);
  });

  it("tells a handler that its buyer has left, and charges the parts of before", async () => {
    const { response: begun, resolve: begin } = deferredResponse();
    let later: boolean | undefined;
    const { buy, buyer, offer, url, shop, channelId } = await scene.open(
      (request, response) => {
        const { payment } = request;
        if (payment?.scheme !== "batch-settlement") return;
        payment.charge(100n);
        response.write("part");
        response.once("close", () => {
          later = payment.charge(100n);
        });
        begin(response);
      },
      { route },
    );
    const left = httpRequest(url, { headers: await buyer.pay(offer, 1_000n) });
    left.on("error", () => undefined);
    left.on("response", () => void begun.then(() => left.destroy()));
    left.end();
    await begun;
    // Out of step: it is corrected once the first one has ended.
    expect((await buy(9_000n)).status).toBe(402);
    expect(later).toBe(false);
    expect(await shop.chargedOf(channelId)).toBe(100n);
  });
});
