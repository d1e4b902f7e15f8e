import { compactSignatureToSignature, parseCompactSignature, parseSignature } from "viem";
import { sign } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { changeSignature } from "../testing/signature-forms.ts";
import { splitSignature } from "./split-signature.ts";

const privateKey = `0x${"11".repeat(32)}` as const;
const hash = `0x${"22".repeat(32)}` as const;
const signature = await sign({ hash, privateKey, to: "hex" });
const expected = parseSignature(signature);

describe("an ECDSA signature", () => {
  test("is split as viem splits it", () => {
    expect(splitSignature(signature)).toEqual({
      v: Number(expected.v),
      r: expected.r,
      s: expected.s,
    });
  });

  test("is split alike with v as 0 or 1, and in the compact form", () => {
    const usual = splitSignature(signature);
    expect(splitSignature(changeSignature(signature, "parity"))).toEqual(usual);
    const compact = changeSignature(signature, "compact");
    expect(compactSignatureToSignature(parseCompactSignature(compact)).s).toBe(expected.s);
    expect(splitSignature(compact)).toEqual(usual);
  });

  test("an ECDSA signature with a high s is refused, in each form", () => {
    expect(splitSignature(changeSignature(signature, "highS"))).toBeUndefined();
    const compactWithEverySBit = `0x${"11".repeat(32)}${"ff".repeat(32)}` as const;
    expect(splitSignature(compactWithEverySBit)).toBeUndefined();
  });

  test("an ECDSA signature with another v or length, or with r or s out of range, is refused", () => {
    const rs = signature.slice(0, 130);
    for (const last of ["02", "1a", "1d", "25", "ff"]) {
      expect(splitSignature(`0x${rs.slice(2)}${last}`)).toBeUndefined();
    }
    expect(splitSignature("0x")).toBeUndefined();
    expect(splitSignature(`${signature}00`)).toBeUndefined();
    expect(splitSignature(`0x${"00".repeat(64)}1b`)).toBeUndefined();
    expect(splitSignature(`0x${"ff".repeat(32)}${"00".repeat(31)}011b`)).toBeUndefined();
  });
});
