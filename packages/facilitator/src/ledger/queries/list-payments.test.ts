import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { asset, network, queue } from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import { listPayments } from "./list-payments.ts";
import { paymentStats } from "./payment-stats.ts";

describe.each(engines)("the list of payments on %s", (engine) => {
  const { join, wait } = ledgerForEachTest(engine);

  it("is read page by page, with sums", async () => {
    const ledger = await join("one");
    const ids: string[] = [];
    for (let index = 0; index < 5; index += 1) {
      wait(1);
      ids.unshift(await queue(ledger, { value: 2n ** 255n }));
    }
    const first = await listPayments(ledger, { limit: 3 });
    expect(first.payments.map(({ id }) => id)).toEqual(ids.slice(0, 3));
    const second = await listPayments(ledger, { limit: 3, cursor: first.nextCursor });
    expect(second.payments.map(({ id }) => id)).toEqual(ids.slice(3));
    expect(second.nextCursor).toBeUndefined();
    expect((await listPayments(ledger, { state: "failed" })).payments).toEqual([]);
    expect((await listPayments(ledger, { payer: `0x${"BB".repeat(20)}` })).payments).toHaveLength(
      5,
    );
    expect(await paymentStats(ledger)).toEqual([
      { network, asset, state: "queued", count: 5, amount: 5n * 2n ** 255n },
    ]);
  });
});
