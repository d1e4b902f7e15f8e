import { describe, expect, test } from "vitest";
import { addressSchema, bytes32Schema, isSameAddress, toLowerHex } from "./address.ts";

const checksummed = "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb";

describe("an address", () => {
  test.each([
    checksummed,
    toLowerHex(checksummed),
    `0x${checksummed.slice(2).toUpperCase()}`,
    `0x${"0".repeat(40)}`,
  ])("may be written %s", (text) => {
    expect(addressSchema.parse(text)).toBe(text);
  });

  test.each([
    ["with a bad checksum", "0xb8CE59FC3717ada4C02eaDF9682A9e934F625ebb"],
    ["one digit short", checksummed.slice(0, -1)],
    ["one digit long", `${checksummed}0`],
    ["without its prefix", checksummed.slice(2)],
    ["with a capital prefix", `0X${checksummed.slice(2).toUpperCase()}`],
    ["with a foreign digit", `0x${"g".repeat(40)}`],
    ["with a line end", `${checksummed}\n`],
    ["with a space", ` ${checksummed}`],
    ["by name", "vitalik.eth"],
    ["as a number", 1],
  ])("may not be written %s", (_, value) => {
    expect(addressSchema.safeParse(value).success).toBe(false);
  });

  test("is the same in any letter case", () => {
    expect(isSameAddress(checksummed, toLowerHex(checksummed))).toBe(true);
    expect(isSameAddress(checksummed, `0x${"0".repeat(40)}`)).toBe(false);
  });
});

test.each([
  [`0x${"f3".repeat(32)}`, true],
  [`0x${"F3".repeat(32)}`, true],
  [`0x${"f3".repeat(31)}`, false],
  [`0x${"f3".repeat(33)}`, false],
  [`${"f3".repeat(32)}`, false],
  [`0x${"f3".repeat(32)}\n`, false],
  [`x0x${"f3".repeat(32)}`, false],
])("32 bytes: %j is %s", (text, isValid) => {
  expect(bytes32Schema.safeParse(text).success).toBe(isValid);
});
