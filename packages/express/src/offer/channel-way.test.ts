import { describe, expect, it } from "vitest";
import { channelWay } from "./channel-way.ts";

const account = `0x${"aa".repeat(20)}` as const;
const offered = {
  network: "eip155:9745",
  amount: "1000",
  asset: account,
  payTo: account,
  maxTimeoutSeconds: 60,
  extra: {},
  receiverAuthorizer: account,
} as const;

function minDeposit(asked: bigint | undefined, facilitatorMinDeposit: bigint | undefined): unknown {
  const terms = { withdrawDelay: 900, minDeposit: asked, former: [] };
  return channelWay(terms, { ...offered, facilitatorMinDeposit }).requirements.extra?.minDeposit;
}

describe("the deposit that an offer asks for", () => {
  it("is ten prices, or the amount of the route", () => {
    expect(minDeposit(undefined, undefined)).toBe("10000");
    expect(minDeposit(3_000n, undefined)).toBe("3000");
  });

  it("is never below what the facilitator takes for its gas", () => {
    expect(minDeposit(undefined, 9_000n)).toBe("10000");
    expect(minDeposit(undefined, 45_000n)).toBe("45000");
    expect(minDeposit(3_000n, 9_000n)).toBe("9000");
  });
});
