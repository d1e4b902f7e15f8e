import { afterEach, describe, expect, it } from "vitest";
import { engines, type SettlingDevnet, startSettlingDevnet } from "./testing/settling-devnet.ts";

let settling: SettlingDevnet | undefined;

afterEach(async () => {
  await settling?.stop();
  settling = undefined;
});

describe.each(engines)("a facilitator on %s", (engine) => {
  it("settles a payment, and moves the tokens", async () => {
    settling = await startSettlingDevnet(engine, { isUnmade: true });
    const { devnet, start, pay, balanceOf } = settling;
    const facilitator = await start();
    const { paymentPayload, paymentRequirements } = await pay();

    const verified = await facilitator.verify(paymentPayload, paymentRequirements);
    expect(verified).toMatchObject({ isValid: true });
    const settled = await facilitator.settle(paymentPayload, paymentRequirements);

    expect(settled).toMatchObject({ success: true, network: devnet.network, amount: "1000" });
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
  });

  it("settles a hundred concurrent payments without a nonce collision", async () => {
    settling = await startSettlingDevnet(engine, { isUnmade: true });
    const { devnet, start, pay, balanceOf } = settling;
    const facilitator = await start();
    const payments = await Promise.all(Array.from({ length: 100 }, () => pay()));

    const settled = await Promise.all(
      payments.map(({ paymentPayload, paymentRequirements }) =>
        facilitator.settle(paymentPayload, paymentRequirements),
      ),
    );

    expect(settled.filter(({ success }) => success)).toHaveLength(100);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(100_000n);
  });
});
