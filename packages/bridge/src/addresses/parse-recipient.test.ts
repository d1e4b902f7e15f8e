import { describe, expect, it } from "vitest";
import { BridgeError } from "../bridge-error.ts";
import { usdt0Chains } from "../chains/usdt0-chains.ts";
import { parseRecipient } from "./parse-recipient.ts";

function parse(text: unknown, key: string): string {
  const chain = usdt0Chains.find((each) => each.key === key);
  if (chain === undefined) throw new Error(`There is no chain ${key}`);
  return parseRecipient(text, chain);
}

function refusal(text: unknown, key: string): string {
  try {
    return `accepted as ${parse(text, key)}`;
  } catch (error) {
    if (error instanceof BridgeError && error.code === "invalid_recipient") return error.message;
    throw error;
  }
}

describe("a recipient on an EVM chain", () => {
  const checksummed = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"; // EIP-55's own example
  const bytes = "0x000000000000000000000000fb6916095ca1df60bb79ce92ce3ea74c37c5d359";

  it("may be written with a checksum, or in one letter case", () => {
    expect(parse(checksummed, "plasma")).toBe(bytes);
    expect(parse(checksummed.toLowerCase(), "plasma")).toBe(bytes);
    expect(parse(`0x${checksummed.slice(2).toUpperCase()}`, "plasma")).toBe(bytes);
  });

  it.each([
    ["0xFB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", "does not fit its checksum"],
    ["0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d35", "is not 0x and 40 hex digits"],
    ["fB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", "is not 0x and 40 hex digits"],
    [`${checksummed} `, "is not 0x and 40 hex digits"],
    ["", "is not 0x and 40 hex digits"],
    ["vitalik.eth", "is not 0x and 40 hex digits"],
    [`0x${"0".repeat(40)}`, "zero address"],
    ["TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "is not 0x and 40 hex digits"],
    [undefined, "is not a text"],
  ])("is refused as %j", (text, reason) => {
    expect(refusal(text, "plasma")).toContain(reason);
  });
});

describe("a recipient on Solana", () => {
  it.each([
    // The mint of wrapped SOL, and the token program.
    [
      "So11111111111111111111111111111111111111112",
      "0x069b8857feab8184fb687f634618c035dac439dc1aeb3b5598a0f00000000001",
    ],
    [
      "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
      "0x06ddf6e1d765a193d9cbe146ceeb79ac1cb485ed5f5b37913a8cf5857eff00a9",
    ],
  ])("is 32 bytes in base58: %s", (text, bytes) => {
    expect(parse(text, "solana")).toBe(bytes);
  });

  it.each([
    ["So1111111111111111111111111111111111111111", "is not 32 bytes"],
    ["So111111111111111111111111111111111111111I2", "is not base58"],
    ["TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA11", "has not 32 to 44 characters"],
    ["zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", "is not 32 bytes"],
    ["11111111111111111111111111111111", "zero address"],
    ["0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", "is not base58"],
    ["1".repeat(100_000), "has not 32 to 44 characters"],
  ])("is refused as %.50j", (text, reason) => {
    expect(refusal(text, "solana")).toContain(reason);
  });
});

describe("a recipient on TON", () => {
  const bytes = "0xca6e321c7cce9ecedf0a8ca2492ec8592494aa5fb5ce0387dff96ef6af982a3e";

  it.each([
    // The example of TON's documentation: raw, bounceable, non-bounceable, and in the other base64.
    ["0:ca6e321c7cce9ecedf0a8ca2492ec8592494aa5fb5ce0387dff96ef6af982a3e"],
    ["0:CA6E321C7CCE9ECEDF0A8CA2492EC8592494AA5FB5CE0387DFF96EF6AF982A3E"],
    ["EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPrHF"],
    ["UQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPuwA"],
    ["EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff+W72r5gqPrHF"],
  ])("may be %s", (text) => {
    expect(parse(text, "ton")).toBe(bytes);
  });

  it.each([
    ["EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPrHG", "does not fit its checksum"],
    ["EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPuwA", "does not fit its checksum"],
    ["kQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPgpP", "is for the test network only"],
    ["0QDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPleK", "is for the test network only"],
    // The elector, in the masterchain.
    ["Ef8zMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM0vF", "is in workchain -1"],
    [`-1:${"3".repeat(64)}`, "is in workchain -1"],
    [`0:${"3".repeat(63)}`, "is neither"],
    [`0:${"0".repeat(64)}`, "zero address"],
    ["0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", "is neither"],
  ])("is refused as %s", (text, reason) => {
    expect(refusal(text, "ton")).toContain(reason);
  });
});

describe("a recipient on TRON", () => {
  it.each([
    // The contract of USDT.
    [
      "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
      "0x000000000000000000000000a614f803b6fd780986a42c78ec9c7f77e6ded13c",
    ],
  ])("is 20 bytes without their prefix: %s", (text, bytes) => {
    expect(parse(text, "tron")).toBe(bytes);
  });

  it.each([
    ["TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6u", "does not fit its checksum"],
    ["TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6", "has not 34 characters"],
    ["TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj0t", "is not base58"],
    // An address of Bitcoin: the same form under another prefix.
    ["1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "is not an account of TRON"],
    ["0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", "has not 34 characters"],
    ["41a614f803b6fd780986a42c78ec9c7f77e6ded13c", "has not 34 characters"],
  ])("is refused as %s", (text, reason) => {
    expect(refusal(text, "tron")).toContain(reason);
  });
});

describe("an address with one wrong character", () => {
  it.each([
    ["ton", "EQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPrHF"],
    ["tron", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"],
  ])("is refused at any position, on %s", (key, right) => {
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/";
    const accepted: string[] = [];
    for (let place = 0; place < right.length; place++) {
      for (const character of alphabet) {
        const wrong = `${right.slice(0, place)}${character}${right.slice(place + 1)}`;
        // The other base64 has another character for the same bits.
        if (wrong === right || wrong === right.replace("-", "+")) continue;
        if (refusal(wrong, key).startsWith("accepted")) accepted.push(wrong);
      }
    }
    expect(accepted).toEqual([]);
  });
});
