import { expect, it } from "vitest";
import { findKnownToken, plasmaUsdt0 } from "../index.ts";

it("finds a known token by its network and address, in any case", () => {
  const base = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
  const lower = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913";
  expect(findKnownToken("eip155:8453", lower)).toEqual({
    address: base,
    name: "USD Coin",
    version: "2",
    decimals: 6,
    symbol: "USDC",
  });
  expect(findKnownToken("eip155:9745", plasmaUsdt0.address)).toEqual(plasmaUsdt0);
  expect(findKnownToken("eip155:1", base)).toBeUndefined();
});
