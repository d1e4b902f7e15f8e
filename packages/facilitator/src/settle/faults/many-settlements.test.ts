import { afterEach, describe, expect, it } from "vitest";
import {
  engines,
  type SettlingDevnet,
  startSettlingDevnet,
} from "../../testing/settling-devnet.ts";

let settling: SettlingDevnet | undefined;

afterEach(async () => {
  await settling?.stop();
  settling = undefined;
});

describe.each(engines)("a hundred concurrent settlements, on %s", (engine) => {
  it.each([
    ["each in a transaction of its own", 1],
    ["in batches", 50],
  ])("%s: all are paid, without a nonce collision", async (_how, maxPaymentsPerTransaction) => {
    settling = await startSettlingDevnet(engine);
    const { devnet, start, pay, balanceOf } = settling;
    const facilitator = await start({ maxPaymentsPerTransaction });
    const { address: relayer } = devnet.accounts.relayer;
    const sentBefore = await devnet.client.getTransactionCount({ address: relayer });
    const payments = await Promise.all(Array.from({ length: 100 }, () => pay()));

    const settled = await Promise.all(
      payments.map(({ paymentPayload, paymentRequirements }) =>
        facilitator.settle(paymentPayload, paymentRequirements),
      ),
    );

    expect(settled.filter(({ success }) => success)).toHaveLength(100);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(100_000n);
    const transactions = new Set(settled.map(({ transaction }) => transaction));
    const sent = (await devnet.client.getTransactionCount({ address: relayer })) - sentBefore;
    expect(sent).toBe(transactions.size);
    if (maxPaymentsPerTransaction === 1) expect(transactions.size).toBe(100);
  });
});
