import { describe, expect, test } from "vitest";
import {
  samplePayloadV1,
  samplePayloadV2,
  sampleRequirements,
} from "../testing/sample-messages.ts";
import type { Authorization } from "./authorization.ts";
import { checkPayment } from "./check-payment.ts";
import { type Payment, readPayment } from "./payment.ts";
import type { PaymentPayload } from "./payment-payload.ts";

const nowSeconds = 1_740_672_000n;
const now = Number(nowSeconds) * 1000 + 999;
const forever = 2n ** 256n - 1n;

function paymentWith(
  changes: Partial<Authorization>,
  payload: PaymentPayload = samplePayloadV2,
): Payment {
  const read = readPayment(payload, sampleRequirements);
  if (!read.ok) throw new Error(read.reason);
  const validBefore = nowSeconds + 300n;
  const authorization = { ...read.payment.authorization, validBefore, ...changes };
  return { ...read.payment, authorization };
}

const recipient = "invalid_exact_evm_recipient_mismatch";
const value = "invalid_exact_evm_payload_authorization_value_mismatch";
const validBefore = "invalid_exact_evm_payload_authorization_valid_before";
const validAfter = "invalid_exact_evm_payload_authorization_valid_after";

test("a payment that matches its requirements passes while it is valid", () => {
  expect(checkPayment(paymentWith({}), { now })).toBeUndefined();
});

test("faults are reported in one order: recipient, value, end, beginning", () => {
  const to = `0x${"0".repeat(40)}` as const;
  const faults = { to, value: 1n, validBefore: 0n, validAfter: forever };
  const { to: _, ...fromValue } = faults;
  const { value: __, ...fromEnd } = fromValue;
  const { validBefore: ___, ...fromBeginning } = fromEnd;
  expect(checkPayment(paymentWith(faults), { now })).toBe(recipient);
  expect(checkPayment(paymentWith(fromValue), { now })).toBe(value);
  expect(checkPayment(paymentWith(fromEnd), { now })).toBe(validBefore);
  expect(checkPayment(paymentWith(fromBeginning), { now })).toBe(validAfter);
});

describe("the value of a payment", () => {
  test("equals the amount in version 2", () => {
    expect(checkPayment(paymentWith({ value: 9_999n }), { now })).toBe(value);
    expect(checkPayment(paymentWith({ value: 10_000n }), { now })).toBeUndefined();
    expect(checkPayment(paymentWith({ value: 10_001n }), { now })).toBe(value);
    expect(checkPayment(paymentWith({ value: 0n }), { now })).toBe(value);
  });

  test("is at least the amount in version 1", () => {
    const v1 = (amount: bigint) => paymentWith({ value: amount }, samplePayloadV1);
    expect(checkPayment(v1(9_999n), { now })).toBe(value);
    expect(checkPayment(v1(10_000n), { now })).toBeUndefined();
    expect(checkPayment(v1(10_001n), { now })).toBeUndefined();
  });
});

describe("validBefore", () => {
  const check = (leftSeconds: bigint, options = {}) =>
    checkPayment(paymentWith({ validBefore: nowSeconds + leftSeconds }), { now, ...options });

  test("leaves more than six seconds to settle", () => {
    expect(check(-1n)).toBe(validBefore);
    expect(check(5n)).toBe(validBefore);
    expect(check(6n)).toBe(validBefore);
    expect(check(7n)).toBeUndefined();
  });

  test("leaves more than two blocks to settle on a slow chain", () => {
    expect(check(24n, { blockTimeSeconds: 12 })).toBe(validBefore);
    expect(check(25n, { blockTimeSeconds: 12 })).toBeUndefined();
    expect(check(7n, { blockTimeSeconds: 0.5 })).toBeUndefined();
  });

  test("leaves time to settle after the handler's time allowance", () => {
    expect(check(66n, { handlerTimeoutSeconds: 60 })).toBe(validBefore);
    expect(check(67n, { handlerTimeoutSeconds: 60 })).toBeUndefined();
    expect(check(84n, { handlerTimeoutSeconds: 60, blockTimeSeconds: 12 })).toBe(validBefore);
  });

  test("is refused at zero and at the largest uint256", () => {
    expect(checkPayment(paymentWith({ validBefore: forever }), { now })).toBe(validBefore);
    expect(checkPayment(paymentWith({ validBefore: 0n }), { now })).toBe(validBefore);
  });

  test("ends within a day, or within twice the requested time", () => {
    const day = 86_400n;
    expect(check(day)).toBeUndefined();
    expect(check(day + 1n)).toBe(validBefore);
    const patient = (leftSeconds: bigint) =>
      checkPayment(
        { ...paymentWith({ validBefore: nowSeconds + leftSeconds }), maxTimeoutSeconds: 86_400 },
        { now },
      );
    expect(patient(2n * day)).toBeUndefined();
    expect(patient(2n * day + 1n)).toBe(validBefore);
  });
});

test("refuses a payment before its validAfter", () => {
  const check = (from: bigint) => checkPayment(paymentWith({ validAfter: from }), { now });
  expect(check(0n)).toBeUndefined();
  expect(check(nowSeconds)).toBeUndefined();
  expect(check(nowSeconds + 1n)).toBe(validAfter);
  expect(check(forever)).toBe(validAfter);
});
