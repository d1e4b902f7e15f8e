import { once } from "node:events";
import { rename } from "node:fs/promises";
import { createChannelFixture } from "@coinslot/devnet";
import { encodePaymentRequired, headerName, plasma, voucherTypedData } from "@coinslot/protocol";
import { DatabaseSync } from "@photostructure/sqlite";
import { describe, expect, it } from "vitest";
import { paymentOf } from "../index.ts";
import type { ChannelSeller, Correction } from "../testing/channel-seller.ts";
import { useChannels } from "../testing/use-channels.ts";

const { world, inFolder, sellerOf, createFetch, records, onChain, openStore } = useChannels();

const ceilings = ({ paid }: ChannelSeller) => paid.map(({ ceiling }) => ceiling);
const types = ({ paid }: ChannelSeller) => paid.map(({ payload }) => payload.type);

/** A seller that answers every voucher from the second one on by a correction. */
async function sellerThatCorrects(change: (count: number) => Correction | Promise<Correction>) {
  const seller = await sellerOf({
    onPaid: async (paid, response, count) => {
      if (count === 1) return false;
      await seller.correct(paid, response, await change(count));
      return true;
    },
  });
  return seller;
}

/** The buyer's own signature of a ceiling, as a seller may have it. */
function signOwn(id: `0x${string}`, maxClaimableAmount: bigint) {
  const data = voucherTypedData({ channelId: id, maxClaimableAmount }, { network: plasma });
  return world.devnet().accounts.buyer.signTypedData(data);
}

describe("a seller whose refusals have bodies that never end", () => {
  const busy = "invalid_batch_settlement_evm_channel_busy";
  it.each([
    ["a busy channel", busy, (url: string) => createFetch()(url)],
    ["a refund", "no", (url: string) => createFetch().refundChannel(url)],
  ])("holds no connection by those of %s", async (_name, error, ask) => {
    const closed: Promise<unknown>[] = [];
    const seller: ChannelSeller = await sellerOf({
      onPaid: ({ payload }, response, count) => {
        if (payload.type !== "refund" && count !== 2) return false;
        closed.push(once(response, "close"));
        const resource = { url: "/" };
        const accepts = [seller.terms()];
        const offer = encodePaymentRequired({ x402Version: 2, resource, accepts, error });
        response.writeHead(402, { [headerName.paymentRequired]: offer }).write("{");
        return true;
      },
    });
    await createFetch()(seller.url);
    await ask(seller.url);
    expect(closed).toHaveLength(1);
    await Promise.all(closed);
  });
});

describe("a correction that is not believed", () => {
  const idOf = (seller: ChannelSeller) => seller.paid[0]?.id ?? "0x";
  const cases: [string, (seller: ChannelSeller) => Correction | Promise<Correction>][] = [
    ["a larger sum under the voucher of before", () => ({ charged: 9000n })],
    ["a larger sum without a voucher", () => ({ charged: 9000n, signed: undefined })],
    [
      "a larger sum and ceiling under the signature of before",
      () => ({ charged: 9000n, signed: 9000n }),
    ],
    [
      "a larger sum under another signer's voucher",
      async (seller) => ({
        charged: 9000n,
        signed: 9000n,
        signature: await world
          .devnet()
          .accounts.relayer.signTypedData(
            voucherTypedData(
              { channelId: idOf(seller), maxClaimableAmount: 9000n },
              { network: plasma },
            ),
          ),
      }),
    ],
    [
      "another channel, with an own signature for it",
      async () => ({
        id: `0x${"77".repeat(32)}`,
        charged: 9000n,
        signed: 9000n,
        signature: await signOwn(`0x${"77".repeat(32)}`, 9000n),
      }),
    ],
    [
      "another channel's voucher",
      async () => ({
        charged: 9000n,
        signed: 9000n,
        signature: await signOwn(`0x${"77".repeat(32)}`, 9000n),
      }),
    ],
    [
      "a lower sum without a voucher, and not the claimed one",
      () => ({ charged: 1n, signed: undefined }),
    ],
    [
      "another authorizer",
      () => ({ charged: 0n, extra: { receiverAuthorizer: `0x${"11".repeat(20)}` } }),
    ],
    ["another delay", () => ({ charged: 0n, extra: { withdrawDelay: 901 } })],
    ["a higher price", () => ({ charged: 0n, terms: { amount: "1001" } })],
  ];
  for (const [name, change] of cases) {
    it(`is returned as the rejection it is: ${name}`, async () => {
      const seller: ChannelSeller = await sellerThatCorrects(() => change(seller));
      const pay = createFetch();
      await pay(seller.url);
      const response = await pay(seller.url);
      expect(response.status).toBe(402);
      expect(paymentOf(response)?.state).toBe("rejected");
      expect(ceilings(seller)).toEqual([1000n, 2000n]);
      expect((await records())[0]).toMatchObject({ ceiling: 2000n, charged: 1000n });
    });
  }

  it("a correction below what the chain shows as claimed is not believed", async () => {
    const seller = await sellerThatCorrects(() => ({ charged: 0n }));
    const pay = createFetch();
    await pay(seller.url);
    const channels = createChannelFixture(world.devnet());
    const [record] = await records();
    if (record === undefined) throw new Error("No channel");
    await channels.claim([await channels.rowOf(record.config, 1000n)]);
    expect((await pay(seller.url)).status).toBe(402);
    expect(ceilings(seller)).toEqual([1000n, 2000n]);
  });
});

describe("a rejection whose body never ends", () => {
  it("is decided by its headers, and frees the lane", async () => {
    const seller = await sellerOf({
      onPaid: (_paid, response, count) => {
        if (count !== 2) return false;
        const receipt = { success: false, errorReason: "no", transaction: "", network: plasma };
        const value = Buffer.from(JSON.stringify(receipt)).toString("base64");
        response.writeHead(402, { "payment-response": value });
        response.write("{");
        return true;
      },
    });
    const pay = createFetch();
    await pay(seller.url);
    const response = await pay(seller.url);
    expect(paymentOf(response)).toMatchObject({ state: "rejected", reason: "no" });
    expect((await pay(seller.url)).status).toBe(200);
  });
});

describe("a seller that walks the ceiling up", () => {
  it("gets one price more per call, although it shows each voucher as charged", async () => {
    const seller = await sellerOf({
      onPaid: async (paid, response, count) => {
        if (count === 1) return false;
        const { signature } = paid.payload.voucher;
        await seller.correct(paid, response, {
          charged: paid.ceiling,
          signed: paid.ceiling,
          signature,
        });
        return true;
      },
    });
    const pay = createFetch();
    await pay(seller.url);
    for (const highest of [2000n, 3000n, 4000n]) {
      const response = await pay(seller.url);
      expect(response.status).toBe(402);
      // It says that it has charged the voucher: the outcome is no plain rejection.
      expect(paymentOf(response)?.state).toBe("unclear");
      expect((await records())[0]?.ceiling).toBe(highest);
    }
  });

  it("gets the budget at most", async () => {
    const seller = await sellerOf({
      onPaid: async (paid, response, count) => {
        if (count === 1) return false;
        const { signature } = paid.payload.voucher;
        const own = { charged: paid.ceiling, signed: paid.ceiling, signature };
        await seller.correct(paid, response, own);
        return true;
      },
    });
    const pay = createFetch({}, { budget: { perDay: "$0.003" } });
    for (let count = 0; count < 3; count += 1) await pay(seller.url);
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });
    expect((await records())[0]?.ceiling).toBe(3000n);
  });

  it("sends downward and upward corrections in turns, and gains nothing", async () => {
    let low: `0x${string}` | undefined;
    const seller = await sellerOf({
      onPaid: async (paid, response, count) => {
        if (count === 1) {
          low = paid.payload.voucher.signature;
          return false;
        }
        const isLow = count % 2 === 0;
        const high = { charged: paid.ceiling, signed: paid.ceiling };
        const change = isLow
          ? { charged: 0n, signed: 1000n, signature: low }
          : { ...high, signature: paid.payload.voucher.signature };
        await seller.correct(paid, response, change);
        return true;
      },
    });
    const pay = createFetch();
    await pay(seller.url);
    expect((await pay(seller.url)).status).toBe(402);
    expect((await records())[0]?.ceiling).toBe(2000n);
    expect(ceilings(seller).every((ceiling) => ceiling <= 2000n)).toBe(true);
  });
});

describe("money in escrow", () => {
  it("stays within `locked`, however often a seller changes its terms", async () => {
    let delay = 900;
    const seller = await sellerOf({
      extra: () => ({ withdrawDelay: delay, minDeposit: "400000" }),
    });
    const pay = createFetch();
    await pay(seller.url);
    delay = 1000;
    await pay(seller.url);
    delay = 1100;
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });
    expect(types(seller)).toEqual(["deposit", "deposit"]);
  });

  it("leaves no channel in the file where a seller that changes its terms is refused", async () => {
    let delay = 900;
    const seller = await sellerOf({ extra: () => ({ withdrawDelay: ++delay }) });
    const pay = createFetch({ locked: { perHost: "$0.001" } });
    for (let count = 0; count < 3; count += 1)
      await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });
    expect(await records()).toEqual([]);
  });

  it("stays within `locked` over all hosts, also with deposits drafted at the same time", async () => {
    const sellers = await Promise.all(
      [1, 2, 3].map(() => sellerOf({ extra: () => ({ minDeposit: "400000" }) })),
    );
    const pay = createFetch({ locked: { perHost: "$0.80", inAll: "$0.80" } });
    const bought = await Promise.allSettled(sellers.map(({ url }) => pay(url)));
    expect(bought.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    expect(sellers.flatMap(types)).toEqual(["deposit", "deposit"]);
  });

  it("is not sent to a seller that may hold it for longer than allowed", async () => {
    const seller = await sellerOf({ extra: () => ({ withdrawDelay: 86_401 }), offersExact: true });
    const pay = createFetch({ exactFirst: false, maxWithdrawDelaySeconds: 86_400 });
    await pay(seller.url);
    expect([seller.exact.length, seller.paid.length]).toEqual([1, 0]);
  });

  it("is topped up for a price that rises, within `locked` and the price per payment", async () => {
    let amount = "1000";
    const seller = await sellerOf({ terms: () => ({ amount }) });
    const pay = createFetch({ locked: { perHost: "$0.06" } });
    await pay(seller.url);
    amount = "50000";
    await pay(seller.url);
    expect(types(seller)).toEqual(["deposit", "deposit"]);
    amount = "90000";
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });
    amount = "100001";
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "over_budget" });
    expect(ceilings(seller)).toEqual([1000n, 51_000n]);
  });

  it("is the same authorization again while its outcome is unknown", async () => {
    const seller = await sellerOf({
      onPaid: (_paid, response, count) => {
        if (count > 5) return false;
        response.destroy();
        return true;
      },
    });
    const pay = createFetch();
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "outcome_unclear" });
    await pay(seller.url);
    const salts = seller.paid.map(({ payload }) =>
      payload.type === "deposit" ? payload.deposit.authorization.erc3009Authorization?.salt : "",
    );
    expect(salts).toHaveLength(6);
    expect(new Set(salts).size).toBe(1);
    expect(await onChain(seller.paid[0]?.id)).toMatchObject({ balance: 10_000n });
  });

  it("is found on the chain where the answer to a deposit was lost after it", async () => {
    const seller = await sellerOf({
      onPaid: async (paid, response, count) => {
        if (count > 5) return false;
        if (count === 1) await seller.deposit(paid);
        response.destroy();
        return true;
      },
    });
    const pay = createFetch();
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "outcome_unclear" });
    expect((await pay(seller.url)).status).toBe(200);
    expect(types(seller).at(-1)).toBe("voucher");
    expect(ceilings(seller).every((ceiling) => ceiling === 1000n)).toBe(true);
    expect(await onChain(seller.paid[0]?.id)).toMatchObject({ balance: 10_000n });
  });

  it("goes along once more where a seller has reported a deposit that it never executed", async () => {
    const seller = await sellerOf({
      onPaid: async (paid, response, count) => {
        if (count === 1) seller.sell(paid, response);
        else if (paid.payload.type === "voucher") {
          const reason = "invalid_batch_settlement_evm_cumulative_exceeds_balance";
          response.writeHead(402, {
            "payment-required": Buffer.from(
              JSON.stringify({ x402Version: 2, error: reason, accepts: [] }),
            ).toString("base64"),
          });
          response.end("{}");
        } else return false;
        return true;
      },
    });
    const pay = createFetch();
    await pay(seller.url);
    expect((await pay(seller.url)).status).toBe(200);
    expect(types(seller)).toEqual(["deposit", "voucher", "deposit"]);
    expect(ceilings(seller)).toEqual([1000n, 2000n, 2000n]);
    expect(await onChain(seller.paid[0]?.id)).toMatchObject({ balance: 10_000n });
  });
});

describe("a lost answer", () => {
  it("is fetched again by the same voucher and key, and not paid again", async () => {
    const kept: (string | undefined)[] = [];
    const again = await sellerOf({
      onPaid: async (paid, response, count) => {
        kept.push(paid.idempotencyKey);
        if (count === 2) {
          // Charged, and the answer is lost.
          again.books.set(paid.id, {
            charged: paid.ceiling,
            signed: paid.ceiling,
            signature: paid.payload.voucher.signature,
          });
          response.destroy();
          return true;
        }
        if (count !== 3) return false;
        again.books.set(paid.id, {
          charged: 1000n,
          signed: paid.ceiling,
          signature: paid.payload.voucher.signature,
        });
        again.sell(paid, response);
        return true;
      },
    });
    const pay = createFetch();
    await pay(again.url);
    expect((await pay(again.url)).status).toBe(200);
    expect(ceilings(again)).toEqual([1000n, 2000n, 2000n]);
    expect(kept[2]).toBe(kept[1]);
    expect(again.paid[2]?.payload.voucher.signature).toBe(again.paid[1]?.payload.voucher.signature);
  });

  it("a lost answer that a seller does not keep ends as unclear, and the next call goes on by its correction", async () => {
    const seller = await sellerOf({
      onPaid: (paid, response, count) => {
        if (count !== 2) return false;
        seller.books.set(paid.id, {
          charged: paid.ceiling,
          signed: paid.ceiling,
          signature: paid.payload.voucher.signature,
        });
        response.destroy();
        return true;
      },
    });
    const pay = createFetch();
    await pay(seller.url);
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "outcome_unclear" });
    expect((await pay(seller.url)).status).toBe(200);
    // Charged, lost, repeated and corrected; then the next one, and no voucher in between.
    expect(ceilings(seller)).toEqual([1000n, 2000n, 2000n, 3000n]);
  });

  it("a lost answer after which its seller never answers costs one price, however often the call is made", async () => {
    const seller = await sellerOf({
      onPaid: (_paid, response, count) => {
        if (count === 1) return false;
        response.destroy();
        return true;
      },
    });
    const pay = createFetch();
    await pay(seller.url);
    for (let count = 0; count < 3; count += 1) {
      await expect(pay(seller.url)).rejects.toMatchObject({ code: "outcome_unclear" });
    }
    expect((await records())[0]).toMatchObject({ ceiling: 2000n, charged: 1000n });
  });
});

describe("a store that is lost or older", () => {
  it("finds its channel on the chain, is corrected by its own signature, and deposits nothing", async () => {
    const seller = await sellerOf();
    const pay = createFetch();
    for (let count = 0; count < 3; count += 1) await pay(seller.url);
    await createFetch({ file: inFolder("new.db") })(seller.url);
    expect(types(seller)).toEqual(["deposit", "voucher", "voucher", "voucher", "voucher"]);
    expect(ceilings(seller)).toEqual([1000n, 2000n, 3000n, 1000n, 4000n]);
    const store = await openStore("new.db");
    expect(store.list()[0]).toMatchObject({ ceiling: 4000n, charged: 4000n });
  });

  it("counts what it finds as signed against the budget", async () => {
    const seller = await sellerOf();
    const pay = createFetch();
    for (let count = 0; count < 3; count += 1) await pay(seller.url);
    const tight = createFetch({ file: inFolder("new.db") }, { budget: { perDay: "$0.0025" } });
    const response = await tight(seller.url);
    expect(response.status).toBe(402);
    expect(ceilings(seller).slice(3)).toEqual([1000n]);
  });

  it("goes on from the seller's proof where it was restored from a backup", async () => {
    const seller = await sellerOf();
    await createFetch()(seller.url);
    const backup = new DatabaseSync(inFolder("channels.db"));
    backup.exec(`vacuum into '${inFolder("backup.db")}'`);
    backup.close();
    for (let count = 0; count < 2; count += 1) await createFetch()(seller.url);
    await rename(inFolder("backup.db"), inFolder("restored.db"));
    const response = await createFetch({ file: inFolder("restored.db") })(seller.url);
    expect(response.status).toBe(200);
    expect(ceilings(seller)).toEqual([1000n, 2000n, 3000n, 2000n, 4000n]);
  });
});
