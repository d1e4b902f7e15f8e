import { encodePaymentRequired, headerName } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import type { PaymentError } from "../index.ts";
import { useChannels } from "../testing/use-channels.ts";

const { inFolder, sellerOf, createFetch, records } = useChannels();

const busy = encodePaymentRequired({
  x402Version: 2,
  resource: { url: "/" },
  accepts: [],
  error: "invalid_batch_settlement_evm_channel_busy",
});

describe("a seller that answers a voucher and is gone", () => {
  it("leaves the deposit that it got counted as locked, and the outcome unclear", async () => {
    const seller = await sellerOf({
      onPaid: (_paid, response) => {
        response.writeHead(402, { [headerName.paymentRequired]: busy, connection: "close" });
        response.end("{}");
        return true;
      },
    });
    const pay = createFetch({}, { wait: () => seller.close() });
    const error: PaymentError = await pay(seller.url).catch((thrown) => thrown);
    expect(seller.paid).toHaveLength(1);
    expect(error).toMatchObject({ code: "outcome_unclear", moneyMayHaveMoved: true });
    expect((await records())[0]?.deposit).toMatchObject({ amount: 10_000n });
    expect(await pay.listChannels()).toMatchObject([{ depositing: 10_000n, locked: 10_000n }]);
  });

  it.each([
    ["the next voucher reaches no seller", undefined],
    ["the caller keeps no further voucher", new Error("The disk is full")],
  ])("leaves the outcome unclear where %s", async (_name, failure) => {
    const seller = await sellerOf({
      onPaid: (_paid, response) => {
        response.setHeader("connection", "close");
        return false;
      },
    });
    const first = createFetch();
    await first(seller.url);
    await first(seller.url);
    let kept = 0;
    const beforeSend = async () => {
      kept += 1;
      if (kept < 2) return;
      if (failure !== undefined) throw failure;
      await seller.close();
    };
    // It knows nothing of the channel: the first voucher is corrected, and a second one follows.
    const pay = createFetch({ file: inFolder("new.db") }, { beforeSend });
    const error: PaymentError = await pay(seller.url).catch((thrown) => thrown);
    expect(kept).toBe(2);
    expect(seller.paid).toHaveLength(3);
    expect(error).toMatchObject({ code: "outcome_unclear", moneyMayHaveMoved: true });
    expect(error.cause).toMatchObject(failure ?? { code: "unreachable" });
  });
});
