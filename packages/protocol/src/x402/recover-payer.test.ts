import { parseSignature, serializeCompactSignature, signatureToCompactSignature } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { type Hex, toLowerHex } from "../money/address.ts";
import { samplePayloadV1, sampleRequirements } from "../testing/sample-messages.ts";
import { transferTypedData } from "./eip3009.ts";
import { type Payment, readPayment } from "./payment.ts";
import { recoverPayer } from "./recover-payer.ts";

async function signedPayment(): Promise<Payment> {
  const account = privateKeyToAccount(generatePrivateKey());
  const read = readPayment(samplePayloadV1, sampleRequirements);
  if (!read.ok) throw new Error(read.reason);
  const from = toLowerHex(account.address);
  const payment = { ...read.payment, authorization: { ...read.payment.authorization, from } };
  return { ...payment, signature: await account.signTypedData(transferTypedData(payment)) };
}

test("a signature recovers to its payer under the signed asset alone", async () => {
  const payment = await signedPayment();
  expect(await recoverPayer(payment)).toBe(payment.authorization.from);
  const otherAsset = { ...payment, asset: `0x${"1".repeat(40)}` } as const;
  expect(await recoverPayer(otherAsset)).not.toBe(payment.authorization.from);
  const otherName = { ...payment, domain: { name: "USDC", version: "1" } };
  expect(await recoverPayer(otherName)).not.toBe(payment.authorization.from);
});

test("a compact signature and one with a parity instead of v recover to their payer", async () => {
  // Twenty signatures include both parities.
  for (const payment of await Promise.all(Array.from({ length: 20 }, signedPayment))) {
    const { r, s, yParity } = parseSignature(payment.signature);
    const compact = serializeCompactSignature(signatureToCompactSignature({ r, s, yParity }));
    const parity: Hex = `0x${payment.signature.slice(2, 130)}0${yParity}`;
    for (const signature of [compact, parity]) {
      expect(await recoverPayer({ ...payment, signature })).toBe(payment.authorization.from);
    }
  }
});

test.each([
  "0x",
  "0x00",
  `0x${"00".repeat(65)}`,
  `0x${"ff".repeat(65)}`,
  `0x${"ab".repeat(66)}`,
] as const)("signature %s does not recover to its payer, and throws nothing", async (signature) => {
  const payment = await signedPayment();
  expect(await recoverPayer({ ...payment, signature })).not.toBe(payment.authorization.from);
});
