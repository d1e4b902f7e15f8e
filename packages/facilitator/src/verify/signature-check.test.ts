import { readPayment } from "@coinslot/protocol";
import { expect, test } from "vitest";
import { createSignatureCheck } from "./signature-check.ts";

const from = "0x857b06519e91e3a54538791bdbb0e22373e36b66";
const to = "0x209693bc6afc0c5328ba36faf03c514ef312287c";
const requirements = {
  scheme: "exact",
  network: "eip155:9745",
  amount: "1",
  asset: "0xb8ce59fc3717ada4c02eadf9682a9e934f625ebb",
  payTo: to,
  maxTimeoutSeconds: 300,
  extra: { name: "USDT0", version: "1" },
} as const;

function paymentOf(signature: `0x${string}`) {
  const authorization = {
    from,
    to,
    value: "1",
    validAfter: "0",
    validBefore: "9",
    nonce: `0x${"ab".repeat(32)}`,
  } as const;
  const payload = { x402Version: 2, accepted: requirements, payload: { signature, authorization } };
  const read = readPayment({ ...payload, x402Version: 2 }, requirements);
  if (!read.ok) throw new Error("The payment cannot be read");
  return read.payment;
}

test("the signer is recovered once per payment", () => {
  let asked = 0;
  const isSignedByPayer = createSignatureCheck({
    digestOf: () => new Uint8Array(32),
    recoverSigner: (_digest, { r }) => {
      asked += 1;
      return r.endsWith("1") ? from : to;
    },
  });
  const good = paymentOf(`0x${"11".repeat(64)}1b`);
  const bad = paymentOf(`0x${"22".repeat(32)}${"11".repeat(32)}1b`);

  for (let count = 0; count < 3; count += 1) {
    expect(isSignedByPayer(good)).toBe(true);
    expect(isSignedByPayer(bad)).toBe(false);
  }
  expect(asked).toBe(2);
  expect(isSignedByPayer(paymentOf("0x1234"))).toBe(false);
  expect(asked).toBe(2);
});
