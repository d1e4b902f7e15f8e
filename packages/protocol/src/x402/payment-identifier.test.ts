import { expect, test } from "vitest";
import { samplePayloadV1, samplePayloadV2 } from "../testing/sample-messages.ts";
import { paymentIdentifier } from "./payment-identifier.ts";

function identifierIn(extension: unknown): string | undefined {
  return paymentIdentifier({
    ...samplePayloadV2,
    extensions: { "payment-identifier": extension },
  });
}

test.each(["a".repeat(16), "pay_7d5d747be160e280504c099d984bcfe0", "A-_9".repeat(32)])(
  "%s identifies a payment",
  (id) => {
    expect(identifierIn({ info: { required: false, id } })).toBe(id);
  },
);

test.each([
  undefined,
  null,
  "a".repeat(16),
  { id: "a".repeat(16) },
  { info: {} },
  { info: { id: "a".repeat(15) } },
  { info: { id: "a".repeat(129) } },
  { info: { id: `${"a".repeat(15)} ` } },
  { info: { id: `${"a".repeat(16)}\n` } },
  { info: { id: 1 } },
])("%j identifies none", (extension) => {
  expect(identifierIn(extension)).toBeUndefined();
});

test("a payment of version 1, or without extensions, has none", () => {
  expect(paymentIdentifier(samplePayloadV1)).toBeUndefined();
  expect(paymentIdentifier(samplePayloadV2)).toBeUndefined();
});
