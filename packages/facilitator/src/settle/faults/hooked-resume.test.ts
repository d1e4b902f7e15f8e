import { afterEach, expect, it } from "vitest";
import { type SettlingDevnet, startSettlingDevnet } from "../../testing/settling-devnet.ts";

let settling: SettlingDevnet | undefined;

afterEach(async () => {
  await settling?.stop();
  settling = undefined;
});

it("a settlement in flight is reported as settled, even if a hook aborts by then", async () => {
  settling = await startSettlingDevnet("sqlite");
  const { devnet, start, pay, balanceOf } = settling;
  let asked = 0;
  const facilitator = await start({
    settleTimeoutSeconds: 0.3,
    hooks: {
      onBeforeSettle() {
        asked += 1;
        if (asked > 1) throw new Error("The hook broke");
      },
    },
  });
  await devnet.setAutomine(false);
  const { paymentPayload, paymentRequirements } = await pay();
  expect(await facilitator.settle(paymentPayload, paymentRequirements)).toMatchObject({
    errorReason: "settlement_pending",
  });
  await devnet.setAutomine(true);
  await devnet.mine();
  await expect
    .poll(() => facilitator.settle(paymentPayload, paymentRequirements), { timeout: 20_000 })
    .toMatchObject({ success: true });
  expect(asked).toBe(1);
  expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
});
