import { request as httpRequest } from "node:http";
import { describe, expect, it } from "vitest";
import { channelSceneForEachTest } from "../testing/channel-scene.ts";
import { channelOption, channelReceiptOf } from "../testing/channel-shop.ts";
import { failFirstWrite, neverClose } from "../testing/shop.ts";

const scene = channelSceneForEachTest();

describe("a lost answer", () => {
  it("goes out again to the same request with the same voucher, free, and is not made anew", async () => {
    let hasStarted = (): void => undefined;
    const started = new Promise<void>((resolve) => {
      hasStarted = resolve;
    });
    const { buyer, offer, send, url, shop, channelId } = await scene.open(
      (request, response) => {
        scene.runs += 1;
        request.socket.once("close", () => response.send(`answer ${scene.runs}`));
        hasStarted();
      },
      { route: { accepts: channelOption(), onDisconnect: "settle" } },
    );
    const headers = await buyer.pay(offer, 1_000n);
    const lost = httpRequest(url, { headers });
    lost.on("error", () => undefined);
    lost.end();
    await started;
    lost.destroy();
    // It waits for the channel, which the first request has until its answer is lost.
    expect(await (await send(headers)).text()).toBe("answer 1");
    expect(scene.runs).toBe(1);
    expect(await shop.chargedOf(channelId)).toBe(1_000n);
    expect((await send(headers)).status).toBe(402);
  });

  it("frees its channel where it cannot be written, although its response never closes", async () => {
    const { buyer, offer, send, buy, shop, channelId } = await scene.open(undefined, {
      before: (app) => app.use(neverClose, failFirstWrite()),
    });
    const headers = await buyer.pay(offer, 1_000n);
    const lost = new AbortController();
    const unanswered = expect(send(headers, { signal: lost.signal })).rejects.toThrow();
    await expect.poll(() => shop.errors.length).toBe(1);
    expect(await (await send(headers)).json()).toEqual({ runs: 1 });
    expect((await buy(2_000n)).status).toBe(200);
    expect(scene.runs).toBe(2);
    expect(await shop.chargedOf(channelId)).toBe(2_000n);
    lost.abort();
    await unanswered;
  });

  it("a lost answer of a process that ended goes out by its successor: by a further run, and one alone", async () => {
    const first = await scene.open();
    const headers = await first.buyer.pay(first.offer, 1_000n);
    expect((await first.send(headers)).status).toBe(200);
    // The mark of the delivery is lost with the process.
    await first.shop.execute("update channels set last_delivered_at = null, last_owner = 'dead'");
    await first.shop.close();
    await sharedSuccessor(first, headers);
  });

  async function sharedSuccessor(
    first: Awaited<ReturnType<typeof scene.open>>,
    headers: Record<string, string>,
  ) {
    const next = await scene.open(undefined, { url: first.shop.ledgerUrl });
    await next.shop.execute("update channels set last_delivered_at = null, last_owner = 'dead'");
    const again = await next.send(headers);
    expect(again.status).toBe(200);
    expect(channelReceiptOf(again)).toMatchObject({
      channelState: { chargedCumulativeAmount: 1_000n },
    });
    expect((await next.send(headers)).status).toBe(402);
    expect(scene.runs).toBe(2);
    expect(await next.shop.chargedOf(first.channelId)).toBe(1_000n);
  }

  it("is kept under a key, and is not another request's", async () => {
    const { buyer, offer, send, shop, channelId } = await scene.open();
    const headers = { ...(await buyer.pay(offer, 1_000n)), "Idempotency-Key": "k".repeat(16) };
    const body = await (await send(headers)).text();
    const again = await send(headers);
    expect(await again.text()).toBe(body);
    expect(channelReceiptOf(again)).toMatchObject({ chargedAmount: 1_000n });
    const other = { ...headers, "Idempotency-Key": "l".repeat(16) };
    expect((await send(other)).status).toBe(402);
    expect((await send(headers, { method: "DELETE" })).status).toBe(402);
    expect(scene.runs).toBe(1);
    expect(await shop.chargedOf(channelId)).toBe(1_000n);
  });
});
