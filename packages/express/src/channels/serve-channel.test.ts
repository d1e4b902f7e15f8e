import { headerName, plasma, toLowerHex } from "@coinslot/protocol";
import type { Request } from "express";
import { describe, expect, it, onTestFinished } from "vitest";
import { copyMigratedLedger } from "../../../facilitator/src/testing/migrated-ledger.ts";
import { paymentMiddleware } from "../index.ts";
import { channelSceneForEachTest, deferredResponse } from "../testing/channel-scene.ts";
import {
  channelOfferOf,
  channelOption,
  channelReceiptOf,
  createChannelBuyer,
} from "../testing/channel-shop.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { payTo } from "../testing/shop.ts";

const scene = channelSceneForEachTest();

describe("a route that sells by channels", () => {
  it("offers its terms beside a transfer", async () => {
    const { offer } = await scene.open();
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
    const { buy, shop, channelId } = await scene.open();
    for (let ceiling = 1_000n; ceiling <= 3_000n; ceiling += 1_000n) {
      const answer = await buy(ceiling);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("cache-control")).toContain("private");
      expect(channelReceiptOf(answer)).toMatchObject({
        chargedAmount: 1_000n,
        channelState: { channelId, balance: 1_000_000n, chargedCumulativeAmount: ceiling },
      });
    }
    expect(scene.runs).toBe(3);
    expect(shop.errors).toEqual([]);
  });

  it("is corrected with the state and its proof where its ceiling is another, and runs nothing", async () => {
    const { buy, buyer, offer } = await scene.open();
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
    expect(scene.runs).toBe(1);
    expect((await buy(2_000n)).status).toBe(200);
  });

  it("is malformed with another ceiling than a uint128 in digits", async () => {
    const { buyer, offer, send } = await scene.open();
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
    expect(scene.runs).toBe(0);
  });

  it("a request with a voucher for other terms than the offer's is refused, before a row is read", async () => {
    const { buyer, offer, send } = await scene.open();
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
    expect(scene.runs).toBe(0);
  });

  it("a request with a voucher of a channel of former terms buys", async () => {
    const former = [{ withdrawDelay: 3_600 }];
    const { buyer, offer, send } = await scene.open(undefined, {
      route: { accepts: channelOption({ former }) },
    });
    const config = { withdrawDelay: 3_600 };
    expect((await send(await buyer.pay(offer, 1_000n, { config }))).status).toBe(200);
    const other = { withdrawDelay: 7_200 };
    expect((await send(await buyer.pay(offer, 1_000n, { config: other }))).status).toBe(402);
  });

  it("a request with a voucher that is sent by ten requests at once buys once, and corrects the others", async () => {
    const { buyer, offer, send } = await scene.open();
    const headers = await buyer.pay(offer, 1_000n);
    const answers = await Promise.all(Array.from({ length: 10 }, () => send(headers)));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, ...Array.from({ length: 9 }, () => 402)]);
    expect(scene.runs).toBe(1);
  });

  it("a request with a voucher that two processes on one PostgreSQL get at once runs one handler, and is charged once", async () => {
    const place = await copyMigratedLedger("postgres");
    onTestFinished(() => place.drop());
    const first = await scene.open(undefined, { url: place.url });
    const second = await scene.open(undefined, { url: place.url });
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
    expect(scene.runs).toBe(10);
    await first.shop.close();
    await second.shop.close();
  });

  it("a request with a voucher without money behind it is refused", async () => {
    const { buy, shop, channelId } = await scene.open();
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
    expect(scene.runs).toBe(1);
  });

  it("is not charged for a failed handler, and may come again", async () => {
    let isBroken = true;
    const { buy, channelId, shop } = await scene.open((_request, response) => {
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
    const { buy, shop } = await scene.open();
    await buy(1_000n);
    await shop.execute("update channels set refunding = 1");
    const answer = await buy(2_000n);
    expect(answer.status).toBe(503);
    expect(answer.headers.get("retry-after")).toBe("5");
    expect(scene.runs).toBe(1);
  });

  it("is discarded where a withdrawal takes its money while the handler runs", async () => {
    let whileRunning: (() => Promise<unknown>) | undefined;
    const { buy, shop, channelId } = await scene.open((_request, response) => {
      scene.runs += 1;
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
    const { buy, buyer } = await scene.open((request, response) => {
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

describe("the body of a request with a voucher", () => {
  it("takes none of the room of unverified bodies once it was admitted", async () => {
    const { response: begun, resolve: begin } = deferredResponse();
    const { buy, url, offer } = await scene.open(
      (_request, response) => {
        scene.runs += 1;
        if (scene.runs === 1) begin(response);
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
