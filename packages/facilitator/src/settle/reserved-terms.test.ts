import { toLowerHex } from "@coinslot/protocol";
import { afterEach, describe, expect, it } from "vitest";
import { engines, type SettlingDevnet, startSettlingDevnet } from "../testing/settling-devnet.ts";

let settling: SettlingDevnet | undefined;

afterEach(async () => {
  await settling?.stop();
  settling = undefined;
});

describe.each(engines)("a reservation, on %s", (engine) => {
  it("is settled for what was reserved, and not by another authorization with the same nonce", async () => {
    settling = await startSettlingDevnet(engine);
    const { devnet, start, pay, balanceOf } = settling;
    const facilitator = await start();
    // From here on the queue is known, and not read for each payment.
    const first = await pay();
    await facilitator.settle(first.paymentPayload, first.paymentRequirements);
    const reserved = await pay();
    const { from, nonce, value, validBefore } = reserved.authorization;
    const cheaper = await pay({ amount: 400n, authorization: { nonce } });
    const payTo = toLowerHex(devnet.accounts.seller.address);
    const held = await facilitator.reserve({
      id: {
        network: devnet.network,
        asset: toLowerHex(devnet.token),
        payer: toLowerHex(from),
        nonce,
      },
      fingerprint: "GET /a for 1000",
      value,
      validBefore,
      payTo,
    });
    if (held.state !== "reserved") throw new Error(held.state);

    const { paymentPayload, paymentRequirements } = cheaper;
    const settled = await facilitator.settle(paymentPayload, paymentRequirements, {
      reservation: held.reservation,
    });

    expect(settled.success).toBe(false);
    expect(await balanceOf(payTo)).toBe(1_000n);
  });
});
