import { describe, expect, test } from "vitest";
import {
  samplePayloadV1,
  samplePayloadV2,
  sampleRequirements,
} from "../testing/sample-messages.ts";
import { readPayment } from "./payment.ts";
import type { PaymentPayload } from "./payment-payload.ts";
import type { PaymentRequirements } from "./payment-requirements.ts";

function reasonOf(payload: PaymentPayload, requirements: PaymentRequirements) {
  const read = readPayment(payload, requirements);
  return read.ok ? undefined : read.reason;
}

describe("a payload and its requirements", () => {
  test.each([samplePayloadV1, samplePayloadV2])(
    "make a payment in version $x402Version",
    (payload) => {
      const payer = "0x857b06519e91e3a54538791bdbb0e22373e36b66";
      const asset = "0xb8ce59fc3717ada4c02eadf9682a9e934f625ebb";
      const payTo = "0x209693bc6afc0c5328ba36faf03c514ef312287c";
      const nonce = payload.payload.authorization.nonce;
      expect(readPayment(payload, sampleRequirements)).toEqual({
        ok: true,
        payment: {
          kind: "eip3009",
          x402Version: payload.x402Version,
          id: { network: "eip155:9745", asset, payer, nonce },
          network: "eip155:9745",
          asset,
          domain: { name: "USDT0", version: "1" },
          authorization: {
            from: payer,
            to: payTo,
            value: 10_000n,
            validAfter: 0n,
            validBefore: 1_740_672_154n,
            nonce,
          },
          signature: payload.payload.signature,
          amountRequired: 10_000n,
          payTo,
          maxTimeoutSeconds: 300,
        },
      });
    },
  );

  test("make a payment with the same identity in every encoding", () => {
    const { signature, authorization } = samplePayloadV1.payload;
    const capitals = (hex: string) => `0x${hex.slice(2).toUpperCase()}` as const;
    const dressed: PaymentPayload = {
      ...samplePayloadV2,
      payload: {
        signature: capitals(signature),
        authorization: {
          ...authorization,
          from: capitals(authorization.from),
          nonce: capitals(authorization.nonce),
        },
      },
    };
    const plain = readPayment(samplePayloadV1, sampleRequirements);
    const other = readPayment(dressed, {
      ...sampleRequirements,
      asset: capitals(sampleRequirements.asset),
    });
    expect(plain.ok && other.ok && other.payment.id).toEqual(plain.ok && plain.payment.id);
  });

  test("make a payment with a network name from before CAIP-2", () => {
    const requirements: PaymentRequirements = { ...sampleRequirements, network: "eip155:8453" };
    expect(reasonOf({ ...samplePayloadV1, network: "base" }, requirements)).toBeUndefined();
    expect(reasonOf({ ...samplePayloadV1, network: "eip155:8453" }, requirements)).toBeUndefined();
  });
});

describe("a payload that contradicts its requirements", () => {
  const { extra: _, ...withoutDomain } = sampleRequirements;
  const [otherScheme, otherNetwork] = [{ scheme: "upto" }, { network: "eip155:1" }] as const;

  test("is refused for the scheme", () => {
    for (const requirements of [otherScheme, { ...otherScheme, ...otherNetwork, extra: {} }]) {
      expect(reasonOf(samplePayloadV1, { ...sampleRequirements, ...requirements })).toBe(
        "unsupported_scheme",
      );
    }
    expect(reasonOf({ ...samplePayloadV1, ...otherScheme }, sampleRequirements)).toBe(
      "unsupported_scheme",
    );
    const accepted = { ...sampleRequirements, ...otherScheme };
    expect(reasonOf({ ...samplePayloadV2, accepted }, sampleRequirements)).toBe(
      "unsupported_scheme",
    );
  });

  test("is refused for the transfer method", () => {
    const extra = { ...sampleRequirements.extra, assetTransferMethod: "permit2" };
    expect(reasonOf(samplePayloadV2, { ...sampleRequirements, extra })).toBe("unsupported_scheme");
    const explicit = { ...sampleRequirements.extra, assetTransferMethod: "eip3009" };
    expect(reasonOf(samplePayloadV2, { ...sampleRequirements, extra: explicit })).toBeUndefined();
  });

  test("is refused for the network", () => {
    expect(reasonOf({ ...samplePayloadV1, network: "plasma" }, withoutDomain)).toBe(
      "invalid_network",
    );
    expect(reasonOf({ ...samplePayloadV1, ...otherNetwork }, withoutDomain)).toBe(
      "invalid_exact_evm_network_mismatch",
    );
    const accepted = { ...sampleRequirements, ...otherNetwork };
    expect(reasonOf({ ...samplePayloadV2, accepted }, sampleRequirements)).toBe(
      "invalid_exact_evm_network_mismatch",
    );
  });

  test.each([
    ["absent", undefined],
    ["empty", {}],
    ["without a version", { name: "USDT0" }],
    ["without a name", { version: "1" }],
    ["with an empty name", { name: "", version: "1" }],
    ["with a number for a version", { name: "USDT0", version: 1 }],
  ])("is refused for the EIP-712 domain, %s", (_, extra) => {
    const requirements = extra === undefined ? withoutDomain : { ...withoutDomain, extra };
    expect(reasonOf(samplePayloadV2, requirements)).toBe("invalid_exact_evm_missing_eip712_domain");
  });

  test("still has its payer recovered", () => {
    expect(readPayment(samplePayloadV1, withoutDomain)).toMatchObject({
      payer: "0x857b06519e91e3a54538791bdbb0e22373e36b66",
    });
  });
});
