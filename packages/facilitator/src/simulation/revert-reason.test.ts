import fc from "fast-check";
import { bytesToHex, encodeErrorResult, parseAbi, size, slice } from "viem";
import { expect, test } from "vitest";
import { readRevertReason } from "./revert-reason.ts";

const abi = parseAbi(["error Error(string)", "error Panic(uint256)", "error Blocked(address)"]);

function error(text: string) {
  return encodeErrorResult({ abi, errorName: "Error", args: [text] });
}

test("a revert reason has the token's words", () => {
  expect(readRevertReason(error("ERC20: transfer amount exceeds balance"))).toBe(
    "ERC20: transfer amount exceeds balance",
  );
});

test("a truncated revert reason is decoded as far as it goes", () => {
  const whole = error("a".repeat(100));
  expect(size(whole)).toBeGreaterThan(128);
  expect(readRevertReason(slice(whole, 0, 128))).toBe("a".repeat(60));
});

test("a panic and a custom error are named by their codes", () => {
  expect(readRevertReason(encodeErrorResult({ abi, errorName: "Panic", args: [17n] }))).toBe(
    "panic 0x11",
  );
  const blocked = encodeErrorResult({ abi, errorName: "Blocked", args: [`0x${"1".repeat(40)}`] });
  expect(readRevertReason(blocked)).toMatch(/^error 0x[0-9a-f]{8}$/);
});

test("empty revert data yields no reason, and a reason without text is named as such", () => {
  expect(readRevertReason("0x")).toBeUndefined();
  expect(readRevertReason(`0x${"00".repeat(128)}`)).toBeUndefined();
  expect(readRevertReason(error(""))).toBe("an empty reason");
});

test("any revert data becomes one short line of printable text", () => {
  expect(readRevertReason(error("a\n\u001b[31mb\u202ec"))).toMatch(/^[\x20-\x7e]+$/);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), fc.boolean(), (data, asError) => {
      const hex = bytesToHex(data);
      const reason = readRevertReason(asError ? `0x08c379a0${hex.slice(2)}` : hex);
      if (reason !== undefined) expect(reason).toMatch(/^[\x20-\x7e]{1,200}$/);
    }),
  );
});
