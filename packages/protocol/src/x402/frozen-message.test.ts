import { expect, test } from "vitest";
import { readFacilitatorArguments } from "../facilitator/facilitator-request.ts";
import { samplePayloadV2, sampleRequirements } from "../testing/sample-messages.ts";
import { freezeMessage, isFrozenMessage } from "./frozen-message.ts";
import { readPayment } from "./payment.ts";
import { composePaymentV2, decodePaymentV2, encodePaymentPayload } from "./payment-payload.ts";

test("a frozen message cannot be changed, at any depth", () => {
  const message = freezeMessage({ extra: { list: [{ name: "a" }] } });
  expect(isFrozenMessage(message)).toBe(true);
  expect(isFrozenMessage(message.extra)).toBe(false);
  expect(() => Object.assign(message, { extra: 1 })).toThrow(TypeError);
  expect(() => Object.assign(message.extra.list[0] ?? {}, { name: "b" })).toThrow(TypeError);
});

test("frozen messages are parsed once, and cached together", () => {
  const payload = decodePaymentV2(encodePaymentPayload(samplePayloadV2));
  const requirements = freezeMessage(structuredClone(sampleRequirements));
  const read = readFacilitatorArguments(payload, requirements);
  expect(read).toEqual(readFacilitatorArguments(samplePayloadV2, sampleRequirements));
  expect(readFacilitatorArguments(payload, requirements)).toBe(read);
  const others = freezeMessage({ ...sampleRequirements, amount: "2" });
  expect(readFacilitatorArguments(payload, others)).toMatchObject({
    ok: true,
    request: { paymentRequirements: { amount: "2" } },
  });
});

test("a frozen payment and a frozen offer are passed on as they are", () => {
  const payload = decodePaymentV2(encodePaymentPayload(samplePayloadV2));
  const requirements = freezeMessage(structuredClone(sampleRequirements));
  const read = readFacilitatorArguments(payload, requirements);
  expect(read.ok && read.request.paymentPayload).toBe(payload);
  expect(read.ok && read.request.paymentRequirements).toBe(requirements);
});

test("a composed payment is passed on as it is, and cannot be changed", () => {
  const requirements = freezeMessage(structuredClone(sampleRequirements));
  const { payload } = structuredClone(samplePayloadV2);
  const composed = composePaymentV2({ payload, accepted: requirements });
  const read = readFacilitatorArguments(composed, requirements);
  expect(read.ok && read.request.paymentPayload).toBe(composed);
  expect(() => Object.assign(payload.authorization, { value: "1" })).toThrow(TypeError);
});

test("members outside an offer's schema are dropped, frozen or not", () => {
  const requirements = freezeMessage({ ...sampleRequirements, note: "ours" });
  const read = readFacilitatorArguments(samplePayloadV2, requirements);
  expect(read).toMatchObject({ ok: true, request: { paymentRequirements: sampleRequirements } });
  expect(read.ok && "note" in read.request.paymentRequirements).toBe(false);
});

test("frozen messages make one frozen payment", () => {
  const payload = decodePaymentV2(encodePaymentPayload(samplePayloadV2));
  const requirements = freezeMessage(structuredClone(sampleRequirements));
  const read = readPayment(payload, requirements);
  expect(read.ok).toBe(true);
  expect(readPayment(payload, requirements)).toBe(read);
  expect(read).toEqual(readPayment(samplePayloadV2, sampleRequirements));
  if (!read.ok) return;
  expect(() => Object.assign(read.payment.authorization, { value: 1n })).toThrow(TypeError);
  const others = freezeMessage({ ...sampleRequirements, amount: "2" });
  expect(readPayment(payload, others)).toMatchObject({ payment: { amountRequired: 2n } });
});

test("a message that is frozen at its root alone is frozen deeply", () => {
  const extra = { name: "USDT0", version: "1" };
  freezeMessage(Object.freeze({ ...sampleRequirements, extra }));
  expect(() => Object.assign(extra, { name: "another" })).toThrow(TypeError);
});

test("mutable messages are parsed each time", () => {
  const payload = structuredClone(samplePayloadV2);
  expect(readFacilitatorArguments(payload, sampleRequirements).ok).toBe(true);
  Object.assign(payload, { x402Version: 7 });
  expect(readFacilitatorArguments(payload, sampleRequirements).ok).toBe(false);
});
