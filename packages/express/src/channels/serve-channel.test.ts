import { request as httpRequest } from "node:http";
import { headerName, plasma, toLowerHex } from "@coinslot/protocol";
import type { Response as ExpressResponse, Request } from "express";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { copyMigratedLedger } from "../../../facilitator/src/testing/migrated-ledger.ts";
import { paymentMiddleware } from "../index.ts";
import {
  channelOfferOf,
  channelOption,
  channelReceiptOf,
  createChannelBuyer,
  openChannelShop,
} from "../testing/channel-shop.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { option, payTo } from "../testing/shop.ts";

let runs = 0;

beforeEach(() => {
  runs = 0;
});

/** A shop of one route, and a buyer that has seen its offer. */
async function openScene(
  handler: (request: Request, response: ExpressResponse) => void = (_request, response) => {
    runs += 1;
    response.json({ runs });
  },
  parts: Partial<Parameters<typeof openChannelShop>[0]> & {
    route?: object;
    method?: "GET" | "POST";
  } = {},
) {
  const { method = "GET", route = {}, ...others } = parts;
  const shop = await openChannelShop({
    routes: { "/weather": { accepts: [option(), channelOption()], ...route } },
    serve: (app) => void app.all("/weather", handler),
    ...others,
  });
  const url = `${shop.url}/weather`;
  const buyer = createChannelBuyer();
  const offer = channelOfferOf(await fetch(url, { method }));
  const send = (headers: Record<string, string>, init: RequestInit = {}) =>
    fetch(url, { method, headers, ...init });
  const buy = async (ceiling: bigint, init: RequestInit = {}) =>
    send(await buyer.pay(offer, ceiling), init);
  const channelId = buyer.idOf(offer);
  return { shop, url, buyer, offer, send, buy, channelId };
}

/** The response of a handler that has begun. */
function deferredResponse() {
  let resolve: (response: ExpressResponse) => void = () => undefined;
  const response = new Promise<ExpressResponse>((done) => {
    resolve = done;
  });
  return { response, resolve };
}

describe("a route that sells by channels", () => {
  it("offers its terms beside a transfer", async () => {
    const { offer } = await openScene();
    expect(offer).toMatchObject({
      scheme: "batch-settlement",
      network: plasma,
      amount: "1000",
      extra: {
        name: expect.any(String),
        version: "1",
        receiverAuthorizer: `0x${"a4".repeat(20)}`,
        withdrawDelay: 86_400,
        minDeposit: "10000",
      },
    });
  });

  it("is refused at start where the facilitator serves no channels", async () => {
    const routes = { "GET /weather": { accepts: channelOption() } };
    expect(() => paymentMiddleware(routes, createPaperFacilitator())).toThrow(
      `the facilitator serves no payment channels on ${plasma}, so "batch-settlement" cannot be sold`,
    );
  });

  it.each([
    [{ payTo: () => payTo }, "payTo must be an address"],
    [{ withdrawDelay: 60 }, "withdrawDelay must be a whole number of seconds from 900"],
    [{ minDeposit: "1.5" }, "minDeposit must be a whole number"],
    [{ former: [{ payTo: "nobody" }] }, "former[0].payTo must be an address"],
    [{ former: [{ token: payTo }] }, "former[0] has an unknown member: token"],
    [{ voucherManager: "facilitator" }, "has an unknown member: voucherManager"],
  ])("is refused at start with %o", (change, problem) => {
    const accepts = { ...channelOption(), ...change };
    const routes = { "GET /weather": { accepts } };
    expect(() => paymentMiddleware(routes as never, createPaperFacilitator())).toThrow(problem);
  });
});

describe("a request with a voucher", () => {
  it("buys, and its receipt says what was charged", async () => {
    const { buy, shop, channelId } = await openScene();
    for (let ceiling = 1_000n; ceiling <= 3_000n; ceiling += 1_000n) {
      const answer = await buy(ceiling);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("cache-control")).toContain("private");
      expect(channelReceiptOf(answer)).toMatchObject({
        chargedAmount: 1_000n,
        channelState: { channelId, balance: 1_000_000n, chargedCumulativeAmount: ceiling },
      });
    }
    expect(runs).toBe(3);
    expect(shop.errors).toEqual([]);
  });

  it("is corrected with the state and its proof where its ceiling is another, and runs nothing", async () => {
    const { buy, buyer, offer } = await openScene();
    await buy(1_000n);
    const paid = await buyer.pay(offer, 1_000n);
    const header = paid[headerName.paymentSignature] ?? "";
    const { signature } = JSON.parse(Buffer.from(header, "base64").toString()).payload.voucher;
    for (const ceiling of [1_000n, 1n, 1_999n, 2_001n, 9_000n, 2n ** 128n - 1n]) {
      const answer = await buy(ceiling);
      expect(answer.status).toBe(402);
      expect(channelOfferOf(answer).extra).toMatchObject({
        channelState: { chargedCumulativeAmount: "1000", totalClaimed: "0" },
        voucherState: { signedMaxClaimable: "1000", signature },
      });
      expect(await answer.json()).toMatchObject({
        error: "invalid_batch_settlement_evm_cumulative_amount_mismatch",
        charged: false,
      });
    }
    expect(runs).toBe(1);
    expect((await buy(2_000n)).status).toBe(200);
  });

  it("is malformed with another ceiling than a uint128 in digits", async () => {
    const { buyer, offer, send } = await openScene();
    const header = (await buyer.pay(offer, 1_000n))[headerName.paymentSignature] ?? "";
    const payment = JSON.parse(Buffer.from(header, "base64").toString());
    for (const maxClaimableAmount of [`${2n ** 128n}`, "-1", "1e3", "01000", "", 1_000, null]) {
      const { payload } = payment;
      const voucher = { ...payload.voucher, maxClaimableAmount };
      const changed = { ...payment, payload: { ...payload, voucher } };
      const answer = await send({
        [headerName.paymentSignature]: Buffer.from(JSON.stringify(changed)).toString("base64"),
      });
      expect([maxClaimableAmount, answer.status]).toEqual([maxClaimableAmount, 400]);
    }
    expect(runs).toBe(0);
  });

  it("for other terms than the offer's is refused, before a row is read", async () => {
    const { buyer, offer, send } = await openScene();
    const other = toLowerHex(`0x${"cc".repeat(20)}`);
    for (const [config, reason] of [
      [{ receiver: other }, "receiver_mismatch"],
      [{ receiverAuthorizer: other }, "receiver_authorizer_mismatch"],
      [{ token: other }, "token_mismatch"],
      [{ withdrawDelay: 901 }, "withdraw_delay_mismatch"],
      [{ payerAuthorizer: other }, "voucher_signature"],
    ] as const) {
      const answer = await send(await buyer.pay(offer, 1_000n, { config }));
      expect(answer.status).toBe(402);
      expect(await answer.json()).toMatchObject({
        error: `invalid_batch_settlement_evm_${reason}`,
      });
    }
    expect(runs).toBe(0);
  });

  it("of a channel of former terms buys", async () => {
    const former = [{ withdrawDelay: 3_600 }];
    const { buyer, offer, send } = await openScene(undefined, {
      route: { accepts: channelOption({ former }) },
    });
    const config = { withdrawDelay: 3_600 };
    expect((await send(await buyer.pay(offer, 1_000n, { config }))).status).toBe(200);
    const other = { withdrawDelay: 7_200 };
    expect((await send(await buyer.pay(offer, 1_000n, { config: other }))).status).toBe(402);
  });

  it("that is sent by ten requests at once buys once, and corrects the others", async () => {
    const { buyer, offer, send } = await openScene();
    const headers = await buyer.pay(offer, 1_000n);
    const answers = await Promise.all(Array.from({ length: 10 }, () => send(headers)));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, ...Array.from({ length: 9 }, () => 402)]);
    expect(runs).toBe(1);
  });

  it("that two processes on one PostgreSQL get at once runs one handler, and is charged once", async () => {
    const place = await copyMigratedLedger("postgres");
    onTestFinished(() => place.drop());
    const first = await openScene(undefined, { url: place.url });
    const second = await openScene(undefined, { url: place.url });
    for (let ceiling = 1_000n; ceiling <= 10_000n; ceiling += 1_000n) {
      const headers = await first.buyer.pay(first.offer, ceiling);
      const answers = await Promise.all(
        [first, second, first, second].map(({ send }) => send(headers)),
      );
      const statuses = answers.map(({ status }) => status);
      expect(statuses.filter((status) => status === 200)).toHaveLength(1);
      expect(statuses.every((status) => [200, 402, 503].includes(status))).toBe(true);
      expect(await second.shop.chargedOf(first.channelId)).toBe(ceiling);
    }
    expect(runs).toBe(10);
    await first.shop.close();
    await second.shop.close();
  });

  it("without money behind it is refused", async () => {
    const { buy, shop, channelId } = await openScene();
    const none = { balance: 0n, totalClaimed: 0n, withdrawRequestedAt: 0, refundNonce: 0n };
    shop.chain.set(channelId, { ...none, secure: 0n });
    expect(await (await buy(1_000n)).json()).toMatchObject({
      error: "invalid_batch_settlement_evm_channel_not_found",
    });
    shop.chain.set(channelId, { ...none, balance: 1_500n, secure: 1_500n });
    expect((await buy(1_000n)).status).toBe(200);
    expect(await (await buy(2_000n)).json()).toMatchObject({
      error: "invalid_batch_settlement_evm_cumulative_exceeds_balance",
    });
    expect(runs).toBe(1);
  });

  it("is not charged for a failed handler, and may come again", async () => {
    let isBroken = true;
    const { buy, channelId, shop } = await openScene((_request, response) => {
      if (isBroken) response.status(500).send("broken");
      else response.send("fine");
    });
    const failed = await buy(1_000n);
    expect(failed.status).toBe(500);
    expect(failed.headers.has(headerName.paymentResponse)).toBe(false);
    isBroken = false;
    expect((await buy(1_000n)).status).toBe(200);
    expect(await shop.chargedOf(channelId)).toBe(1_000n);
  });

  it("gets 503 while a refund runs", async () => {
    const { buy, shop } = await openScene();
    await buy(1_000n);
    await shop.execute("update channels set refunding = 1");
    const answer = await buy(2_000n);
    expect(answer.status).toBe(503);
    expect(answer.headers.get("retry-after")).toBe("5");
    expect(runs).toBe(1);
  });

  it("is discarded where a withdrawal takes its money while the handler runs", async () => {
    let whileRunning: (() => Promise<unknown>) | undefined;
    const { buy, shop, channelId } = await openScene((_request, response) => {
      runs += 1;
      void Promise.resolve(whileRunning?.()).then(() => response.send("secret"));
    });
    await buy(1_000n);
    whileRunning = async () => {
      const none = { totalClaimed: 0n, withdrawRequestedAt: 1, refundNonce: 0n };
      shop.chain.set(channelId, { ...none, balance: 1_000_000n, secure: 1_500n });
      await shop.follow(channelId);
    };
    const answer = await buy(2_000n);
    expect(answer.status).toBe(402);
    expect(await answer.text()).not.toContain("secret");
    expect(await shop.chargedOf(channelId)).toBe(1_000n);
  });

  it("names the signer as its payer, and not the account in whose name the channel is", async () => {
    let seen: Request["payment"];
    const { buy, buyer } = await openScene((request, response) => {
      seen = request.payment;
      response.send(String(request.headers[headerName.paymentSignature.toLowerCase()]));
    });
    expect(await (await buy(1_000n)).text()).toBe("undefined");
    expect(seen).toMatchObject({
      scheme: "batch-settlement",
      payer: toLowerHex(buyer.account.address),
      channel: { payer: buyer.payer },
      amount: "1000",
    });
  });
});

describe("a handler that charges less", () => {
  it("is charged the sum of its parts, and the next ceiling is lower", async () => {
    const { buy } = await openScene((request, response) => {
      const { payment } = request;
      if (payment?.scheme === "batch-settlement") {
        payment.charge(100n);
        payment.charge("150");
      }
      response.send("fine");
    });
    expect(channelReceiptOf(await buy(1_000n))).toMatchObject({
      chargedAmount: 250n,
      channelState: { chargedCumulativeAmount: 250n },
    });
    expect((await buy(1_250n)).status).toBe(200);
  });

  it("hears that nothing is charged once its answer has gone out", async () => {
    let chargeLate: () => unknown = () => undefined;
    const { buy } = await openScene((request, response) => {
      const { payment } = request;
      if (payment?.scheme !== "batch-settlement") throw new Error("Not by a channel");
      payment.charge(100n);
      chargeLate = () => payment.charge(100n);
      response.send("fine");
    });
    expect(channelReceiptOf(await buy(1_000n))).toMatchObject({ chargedAmount: 100n });
    expect(chargeLate()).toBe(false);
  });

  it("throws before any money is involved where a part is no amount, or too much", async () => {
    const thrown: unknown[] = [];
    const { buy } = await openScene((request, response) => {
      const { payment } = request;
      if (payment?.scheme !== "batch-settlement") throw new Error("Not by a channel");
      for (const part of [1_001n, -1n, Number.NaN, 5, "0.5", "-1", "1e2", undefined]) {
        try {
          payment.charge(part as never);
        } catch (error) {
          thrown.push(error);
        }
      }
      payment.charge(1_000n);
      expect(() => payment.charge(1n)).toThrow(RangeError);
      response.send("fine");
    });
    expect(channelReceiptOf(await buy(1_000n))).toMatchObject({ chargedAmount: 1_000n });
    expect(thrown).toHaveLength(8);
  });

  it("gives a free answer with a receipt for nothing, and none for a waived request", async () => {
    let isFree = true;
    const { buy, shop, channelId } = await openScene((request, response) => {
      const { payment } = request;
      if (payment?.scheme !== "batch-settlement" || payment.paymentFlow !== "authorization") return;
      if (isFree) payment.charge(0n);
      else payment.waive();
      response.send("free");
    });
    expect(channelReceiptOf(await buy(1_000n))).toMatchObject({ chargedAmount: 0n });
    isFree = false;
    expect(channelReceiptOf(await buy(1_000n))).toBeUndefined();
    expect(await shop.chargedOf(channelId)).toBe(0n);
  });

  it.each([
    ["250", 250n],
    ["25%", 250n],
    ["33.3333%", 333n],
    ["$0.0001", 100n],
    ["0", 0n],
  ])("by the header of the reference: %s", async (amount, charged) => {
    const { buy } = await openScene((_request, response) => {
      response.setHeader("Settlement-Overrides", JSON.stringify({ amount }));
      response.send("fine");
    });
    const answer = await buy(1_000n);
    expect(channelReceiptOf(answer)).toMatchObject({ chargedAmount: charged });
    expect(answer.headers.has("settlement-overrides")).toBe(false);
  });

  it.each(["1001", "101%", "$1", "much", ""])(
    "charges nothing by the header with %o",
    async (amount) => {
      const { buy, shop, channelId } = await openScene((_request, response) => {
        response.setHeader("Settlement-Overrides", JSON.stringify({ amount }));
        response.send("secret");
      });
      const answer = await buy(1_000n);
      expect(answer.status).toBe(500);
      expect(await answer.text()).not.toContain("secret");
      expect(await shop.chargedOf(channelId)).toBe(0n);
      expect(shop.errors).toHaveLength(1);
    },
  );
});

describe("the body of a request with a voucher", () => {
  it("takes none of the room of unverified bodies once it was admitted", async () => {
    const { response: begun, resolve: begin } = deferredResponse();
    const { buy, url, offer } = await openScene(
      (_request, response) => {
        runs += 1;
        if (runs === 1) begin(response);
        else response.send("fine");
      },
      { method: "POST", options: { maxRequestBytes: 1_024, maxUnverifiedBytes: 1_024 } },
    );
    const body = "b".repeat(1_000);
    const first = buy(1_000n, { body });
    const running = await begun;
    const headers = await createChannelBuyer().pay(offer, 1_000n);
    expect((await fetch(url, { method: "POST", headers, body })).status).toBe(200);
    running.send("fine");
    expect((await first).status).toBe(200);
  });
});

describe("a lost answer", () => {
  it("goes out again to the same request with the same voucher, free, and is not made anew", async () => {
    let hasStarted = (): void => undefined;
    const started = new Promise<void>((resolve) => {
      hasStarted = resolve;
    });
    const { buyer, offer, send, url, shop, channelId } = await openScene(
      (request, response) => {
        runs += 1;
        request.socket.once("close", () => response.send(`answer ${runs}`));
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
    expect(runs).toBe(1);
    expect(await shop.chargedOf(channelId)).toBe(1_000n);
    expect((await send(headers)).status).toBe(402);
  });

  it("of a process that ended goes out by its successor: by a further run, and one alone", async () => {
    const first = await openScene();
    const headers = await first.buyer.pay(first.offer, 1_000n);
    expect((await first.send(headers)).status).toBe(200);
    // The mark of the delivery is lost with the process.
    await first.shop.execute("update channels set last_delivered_at = null, last_owner = 'dead'");
    await first.shop.close();
    await sharedSuccessor(first, headers);
  });

  async function sharedSuccessor(
    first: Awaited<ReturnType<typeof openScene>>,
    headers: Record<string, string>,
  ) {
    const next = await openScene(undefined, { url: first.shop.ledgerUrl });
    await next.shop.execute("update channels set last_delivered_at = null, last_owner = 'dead'");
    const again = await next.send(headers);
    expect(again.status).toBe(200);
    expect(channelReceiptOf(again)).toMatchObject({
      channelState: { chargedCumulativeAmount: 1_000n },
    });
    expect((await next.send(headers)).status).toBe(402);
    expect(runs).toBe(2);
    expect(await next.shop.chargedOf(first.channelId)).toBe(1_000n);
  }

  it("is kept under a key, and is not another request's", async () => {
    const { buyer, offer, send, shop, channelId } = await openScene();
    const headers = { ...(await buyer.pay(offer, 1_000n)), "Idempotency-Key": "k".repeat(16) };
    const body = await (await send(headers)).text();
    const again = await send(headers);
    expect(await again.text()).toBe(body);
    expect(channelReceiptOf(again)).toMatchObject({ chargedAmount: 1_000n });
    const other = { ...headers, "Idempotency-Key": "l".repeat(16) };
    expect((await send(other)).status).toBe(402);
    expect((await send(headers, { method: "DELETE" })).status).toBe(402);
    expect(runs).toBe(1);
    expect(await shop.chargedOf(channelId)).toBe(1_000n);
  });
});

describe("a route that charges in advance", () => {
  const route = { paymentFlow: "upfront" };

  it("streams, and is charged what its handler has charged", async () => {
    const { buy, shop, channelId } = await openScene(
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
    const { buy, shop, channelId } = await openScene(
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

  it("takes the charge back where its handler fails, and keeps it where it does not say less", async () => {
    let isBroken = true;
    const { buy, shop, channelId } = await openScene(
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
    const { buy } = await openScene(
      (_request, response) => {
        runs += 1;
        response.status(404).end();
      },
      { route },
    );
    for (let count = 0; count < 20; count += 1) await buy(1_000n);
    expect((await buy(1_000n)).status).toBe(429);
    expect(runs).toBe(20);
  });

  it("keeps the charge of a buyer that leaves before the answer, and has the answer for it", async () => {
    const { response: begun, resolve: begin } = deferredResponse();
    const { buy, buyer, offer, send, url, shop, channelId } = await openScene(
      (_request, response) => {
        runs += 1;
        if (runs === 1) begin(response);
        else response.send(`answer ${runs}`);
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
    const { buy, shop, channelId } = await openScene(
      (_request, response) => {
        runs += 1;
        if (runs === 1) response.destroy();
        else response.send("fine");
      },
      { route },
    );
    await expect(buy(1_000n)).rejects.toThrow();
    expect((await buy(1_000n)).status).toBe(200);
    expect(runs).toBe(2);
    expect(await shop.chargedOf(channelId)).toBe(1_000n);
  });

  it("tells a handler that its buyer has left, and charges the parts of before", async () => {
    const { response: begun, resolve: begin } = deferredResponse();
    let later: boolean | undefined;
    const { buy, buyer, offer, url, shop, channelId } = await openScene(
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
