import { describe, expect, it } from "vitest";
import { parseRecipient } from "../addresses/parse-recipient.ts";
import { usdt0Chains } from "../chains/usdt0-chains.ts";
import { encodeSend, minAcceptable, toSendParam } from "./send-param.ts";

/**
 * The expected calldata for each kind of chain, derived by hand from the ABI specification. It
 * sends 5 USDT0, at least 4.9985 of them on arrival, for a fee of 0.0123 of the native coin.
 */
const byHand = ({ dstEid, to }: { dstEid: string; to: string }) =>
  [
    // keccak256 of
    // send((uint32,bytes32,uint256,uint256,bytes,bytes,bytes),(uint256,uint256),address)
    "0xc7c7f5b3",
    // offset of SendParam; MessagingFee: native and LZ token; refund address
    "0000000000000000000000000000000000000000000000000000000000000080",
    "000000000000000000000000000000000000000000000000002bb2c8eabcc000",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "00000000000000000000000090f79bf6eb2c4f870365e785982e1f101e93b906",
    // SendParam: endpoint id, recipient, amount, least amount
    `00000000000000000000000000000000000000000000000000000000${dstEid}`,
    to,
    "00000000000000000000000000000000000000000000000000000000004c4b40",
    "00000000000000000000000000000000000000000000000000000000004c4564",
    // where extraOptions, composeMsg and oftCmd begin, from the beginning of SendParam
    "00000000000000000000000000000000000000000000000000000000000000e0",
    "0000000000000000000000000000000000000000000000000000000000000120",
    "0000000000000000000000000000000000000000000000000000000000000140",
    // two bytes of options; nothing; nothing
    "0000000000000000000000000000000000000000000000000000000000000002",
    "0003000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000000",
  ].join("");

describe("the calldata of send", () => {
  it.each([
    {
      target: "plasma",
      recipient: "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
      dstEid: "000076af",
      to: "0000000000000000000000003c44cdddb6a900fa2b585dd299e03d12fa4293bc",
    },
    {
      target: "solana",
      recipient: "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
      dstEid: "000075d8",
      to: "06ddf6e1d765a193d9cbe146ceeb79ac1cb485ed5f5b37913a8cf5857eff00a9",
    },
    {
      target: "ton",
      recipient: "UQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPuwA",
      dstEid: "00007687",
      to: "ca6e321c7cce9ecedf0a8ca2492ec8592494aa5fb5ce0387dff96ef6af982a3e",
    },
    {
      target: "tron",
      recipient: "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
      dstEid: "000076d4",
      to: "000000000000000000000000a614f803b6fd780986a42c78ec9c7f77e6ded13c",
    },
  ])("equals the ABI specification's encoding, to $target", ({ target, recipient, ...words }) => {
    const chain = usdt0Chains.find(({ key }) => key === target);
    if (chain === undefined) throw new Error(`There is no chain ${target}`);
    const param = toSendParam({
      dstEid: chain.eid,
      to: parseRecipient(recipient, chain),
      amount: 5_000_000n,
      minAmount: 4_998_500n,
    });
    const refundTo = "0x90F79bf6EB2c4f870365E785982E1f101E93b906";
    const calldata = encodeSend({ param, nativeFee: 12_300_000_000_000_000n, refundTo });
    expect(calldata).toBe(byHand(words));
  });
});

describe("the minimum arrival", () => {
  it.each([
    [1n, 0n],
    [999n, 998n],
    [1_000n, 999n],
    [1_001n, 999n],
    [5_000_000n, 4_995_000n],
    [2n ** 64n - 1n, 18_428_297_329_635_842_063n],
  ])("takes %s down to %s", (amount, least) => {
    expect(minAcceptable(amount)).toBe(least);
  });
});
