import { encodePaymentRequired, headerName, type PaymentRequirements } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { readV2Offer } from "./v2-offer.ts";

const address = `0x${"11".repeat(20)}` as const;
const exact: PaymentRequirements = {
  scheme: "exact",
  network: "eip155:9745",
  amount: "600000",
  asset: address,
  payTo: address,
  maxTimeoutSeconds: 60,
  extra: { name: "USDT0", version: "1" },
};

/** Reads an offer of a channel with this deposit beside a payment. */
function read(minDeposit: string) {
  const extra = { ...exact.extra, receiverAuthorizer: address, withdrawDelay: 86_400, minDeposit };
  const header = encodePaymentRequired({
    x402Version: 2,
    resource: { url: "https://shop.example/weather" },
    accepts: [exact, { ...exact, scheme: "batch-settlement", extra }],
  });
  const headers = { [headerName.paymentRequired.toLowerCase()]: [header] };
  return readV2Offer({ status: 402, headers, body: Buffer.alloc(0) });
}

describe("the deposit that an offer asks for", () => {
  it("is warned of where the released client never deposits as much", () => {
    expect(read("6000000")).toMatchObject({
      status: "warning",
      found: expect.stringContaining("asks for a deposit of 6, and @x402/evm deposits at most 5"),
      ways: [{}],
    });
    expect(read("5000000")).toMatchObject({ status: "passed" });
  });
});
