import { plasma, plasmaUsdt0 } from "@coinslot/protocol";
import { expect, it } from "vitest";
import { signedPaymentSchema } from "./signed-payment.ts";

it("a kept payment ends within the range of dates, so that its end can be shown", () => {
  const endingAt = (validBefore: number) => ({
    request: { method: "GET", url: "https://shop.example/", bodyHash: "" },
    sendTo: "https://shop.example/",
    header: { name: "X-PAYMENT", value: "e30=" },
    idempotencyKey: "key",
    terms: {
      network: plasma,
      asset: plasmaUsdt0.address,
      payer: `0x${"a1".repeat(20)}`,
      payTo: `0x${"b2".repeat(20)}`,
      amount: "1000",
      nonce: `0x${"0d".repeat(32)}`,
      validBefore,
    },
  });
  for (const end of [1_790_000_000, 8_640_000_000_000]) {
    const { terms } = signedPaymentSchema.parse(endingAt(end));
    expect(new Date(terms.validBefore * 1000).toISOString()).toContain("T");
  }
  for (const end of [8_640_000_000_001, 2 ** 52, -1])
    expect(signedPaymentSchema.safeParse(endingAt(end)).success).toBe(false);
});
