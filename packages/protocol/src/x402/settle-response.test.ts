import { describe, expect, test } from "vitest";
import { base64Of, sampleReceipt } from "../testing/sample-messages.ts";
import {
  decodeReceipt,
  encodeReceipt,
  parseSettleResponse,
  settleResponseSchema,
} from "./settle-response.ts";
import { parseVerifyResponse, verifyResponseSchema } from "./verify-response.ts";

test("a receipt of version 1 has exactly the members of version 1", () => {
  const failed = { ...sampleReceipt, success: false, errorReason: "invalid_payload" };
  const { amount: _, ...membersOfV1 } = failed;
  expect(decodeReceipt(encodeReceipt({ ...failed, errorMessage: "no" }, 1))).toEqual(membersOfV1);
});

describe("a facilitator's answer", () => {
  test("accepts null for absent members", () => {
    const settled = { success: true, transaction: "0x12", network: "base" };
    const absent = {
      errorReason: null,
      errorMessage: null,
      payer: null,
      amount: null,
      extensions: null,
    };
    expect(parseSettleResponse(settleResponseSchema.parse({ ...settled, ...absent }))).toEqual(
      settled,
    );
    const verified = { isValid: true };
    const silent = { invalidReason: null, invalidMessage: null, payer: null };
    expect(parseVerifyResponse(verifyResponseSchema.parse({ ...verified, ...silent }))).toEqual(
      verified,
    );
  });

  test("may omit the transaction, which is a failure", () => {
    const failed = { success: false, errorReason: "insufficient_funds", network: "base" };
    for (const transaction of [undefined, null, ""]) {
      const answer = JSON.stringify({ ...failed, transaction });
      expect(decodeReceipt(base64Of(answer))).toEqual({ ...failed, transaction: "" });
    }
  });

  test("stays readable with a long explanation", () => {
    const talkative = `${"a".repeat(1023)}😀${"b".repeat(5000)}`;
    const answer = { ...sampleReceipt, errorMessage: talkative, errorReason: "c".repeat(300) };
    const read = parseSettleResponse(settleResponseSchema.parse(answer));
    expect(read.success).toBe(true);
    expect(read.errorMessage).toBe("a".repeat(1023));
    expect(read.errorReason).toHaveLength(256);
    const invalid = { isValid: false, invalidMessage: talkative };
    expect(verifyResponseSchema.parse(invalid).invalidMessage).toBe("a".repeat(1023));
  });

  test.each([
    null,
    {},
    { success: "true", transaction: "", network: "eip155:1" },
    { success: true, network: "eip155:1" },
    { success: true, transaction: null, network: "eip155:1" },
  ])("is refused as a settlement: %j", (answer) => {
    expect(settleResponseSchema.safeParse(answer).success).toBe(false);
    expect(() => decodeReceipt(base64Of(JSON.stringify(answer)))).toThrow("The receipt header");
  });

  test.each([null, {}, { isValid: "true" }, { isValid: 1 }])(
    "is refused as a verification: %j",
    (answer) => {
      expect(verifyResponseSchema.safeParse(answer).success).toBe(false);
    },
  );
});
