import {
  decodePaymentRequiredHeader,
  decodePaymentResponseHeader,
  decodePaymentSignatureHeader,
  encodePaymentRequiredHeader,
  encodePaymentResponseHeader,
  encodePaymentSignatureHeader,
} from "@x402/core/http";
import {
  PaymentPayloadV1Schema,
  PaymentPayloadV2Schema,
  PaymentRequiredV1Schema,
  PaymentRequiredV2Schema,
} from "@x402/core/schemas";
import { describe, expect, test } from "vitest";
import { exact } from "x402/schemes";
import * as legacy from "x402/types";
import { isNameOfFirstPackages, parseNetwork } from "../money/network.ts";
import {
  samplePayloadV1,
  samplePayloadV2,
  samplePaymentRequired,
  sampleReceipt,
  sampleRequirements,
} from "../testing/sample-messages.ts";
import { decodePaymentV1, decodePaymentV2, encodePaymentPayload } from "./payment-payload.ts";
import { decodePaymentRequired, encodePaymentRequired } from "./payment-required.ts";
import { toPaymentRequirementsV1 } from "./payment-requirements.ts";
import { decodeReceipt, encodeReceipt } from "./settle-response.ts";

const resource = { url: "https://seller.example/weather" };

describe("network names of version 1", () => {
  test("are marked as names of the first packages exactly where these have them", () => {
    for (const name of legacy.SupportedEVMNetworks) {
      expect(isNameOfFirstPackages(name)).toBe(true);
      expect(parseNetwork(name)).toBe(`eip155:${legacy.EvmNetworkToChainId.get(name)}`);
    }
    for (const name of ["stable", "ethereum", "celo", "eip155:8453", "solana"]) {
      expect(isNameOfFirstPackages(name)).toBe(false);
    }
  });
});

describe("the reference packages of version 2", () => {
  test("write headers that equal ours byte for byte", () => {
    expect(encodePaymentRequired(samplePaymentRequired)).toBe(
      encodePaymentRequiredHeader(samplePaymentRequired),
    );
    expect(encodePaymentPayload(samplePayloadV2)).toBe(
      encodePaymentSignatureHeader(samplePayloadV2),
    );
    expect(encodeReceipt(sampleReceipt, 2)).toBe(encodePaymentResponseHeader(sampleReceipt));
  });

  test("read our messages", () => {
    expect(decodePaymentRequiredHeader(encodePaymentRequired(samplePaymentRequired))).toEqual(
      samplePaymentRequired,
    );
    expect(decodePaymentSignatureHeader(encodePaymentPayload(samplePayloadV2))).toEqual(
      samplePayloadV2,
    );
    expect(decodePaymentResponseHeader(encodeReceipt(sampleReceipt, 2))).toEqual(sampleReceipt);
  });

  test("write messages that we read", () => {
    const offer = decodePaymentRequired(encodePaymentRequiredHeader(samplePaymentRequired));
    expect(offer.accepts.map(({ requirements }) => requirements)).toEqual([sampleRequirements]);
    expect(decodePaymentV2(encodePaymentSignatureHeader(samplePayloadV2))).toEqual(samplePayloadV2);
    expect(decodeReceipt(encodePaymentResponseHeader(sampleReceipt))).toEqual(sampleReceipt);
  });

  test("accept our messages as well formed", () => {
    expect(PaymentRequiredV2Schema.parse(samplePaymentRequired)).toEqual(samplePaymentRequired);
    expect(PaymentPayloadV2Schema.parse(samplePayloadV2)).toEqual(samplePayloadV2);
    expect(PaymentPayloadV1Schema.parse(samplePayloadV1)).toEqual(samplePayloadV1);
    const accepts = [toPaymentRequirementsV1({ requirements: sampleRequirements, resource })];
    const body = { x402Version: 1, error: "Payment required", accepts };
    expect(PaymentRequiredV1Schema.parse(body)).toEqual(body);
  });
});

describe("the legacy packages of version 1", () => {
  test.each([resource, samplePaymentRequired.resource])(
    "accept our 402 body on a named network: %j",
    (sold) => {
      const { extra, ...bare } = sampleRequirements;
      for (const requirements of [bare, { ...bare, extra }]) {
        const networkName = "base-sepolia";
        const entry = toPaymentRequirementsV1({ requirements, resource: sold, networkName });
        const wire: unknown = JSON.parse(JSON.stringify(entry));
        expect(legacy.PaymentRequirementsSchema.parse(wire)).toEqual(entry);
      }
    },
  );

  test("write X-PAYMENT headers that equal ours byte for byte, and read ours", () => {
    const payload = legacy.PaymentPayloadSchema.parse({
      ...samplePayloadV1,
      network: "base-sepolia",
    });
    const header = exact.evm.encodePayment(payload);
    expect(encodePaymentPayload(decodePaymentV1(header))).toBe(header);
    expect(exact.evm.decodePayment(header)).toEqual(payload);
  });

  test("read our receipt", () => {
    const receipt = { ...sampleReceipt, network: "base-sepolia" };
    const { amount: _, ...membersOfV1 } = receipt;
    expect(legacy.settleResponseFromHeader(encodeReceipt(receipt, 1))).toEqual(membersOfV1);
  });
});
