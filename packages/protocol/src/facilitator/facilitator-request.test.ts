import { describe, expect, test } from "vitest";
import {
  samplePayloadV1,
  samplePayloadV2,
  sampleRequirements,
} from "../testing/sample-messages.ts";
import { toPaymentRequirementsV1 } from "../x402/payment-requirements.ts";
import { readFacilitatorArguments, readFacilitatorRequest } from "./facilitator-request.ts";

const requirementsV1 = toPaymentRequirementsV1({
  requirements: sampleRequirements,
  resource: samplePayloadV2.resource,
});
const bodyV1 = {
  x402Version: 1,
  paymentPayload: samplePayloadV1,
  paymentRequirements: requirementsV1,
};
const bodyV2 = {
  x402Version: 2,
  paymentPayload: samplePayloadV2,
  paymentRequirements: sampleRequirements,
};

function reasonOf(body: unknown) {
  const read = readFacilitatorRequest(body);
  return read.ok ? undefined : read.reason;
}

describe("a facilitator request", () => {
  test("is read in version 1, normalised, with the raw payload kept", () => {
    expect(readFacilitatorRequest(bodyV1)).toEqual({
      ok: true,
      request: {
        paymentPayload: samplePayloadV1,
        paymentRequirements: sampleRequirements,
        received: requirementsV1,
      },
    });
  });

  test("is read in version 2", () => {
    expect(readFacilitatorRequest(bodyV2)).toEqual({
      ok: true,
      request: {
        paymentPayload: samplePayloadV2,
        paymentRequirements: sampleRequirements,
        received: sampleRequirements,
      },
    });
  });

  test("is read with the version stated once, outside or inside", () => {
    const { x402Version: _, ...bare } = bodyV2;
    const { x402Version: __, ...payload } = samplePayloadV2;
    expect(reasonOf(bare)).toBeUndefined();
    expect(reasonOf({ ...bodyV2, paymentPayload: payload })).toBeUndefined();
  });

  test("is read with the null values that other languages write for absent members", () => {
    const accepted = { ...sampleRequirements, extra: null };
    const paymentPayload = { ...samplePayloadV2, accepted, resource: null, extensions: null };
    expect(reasonOf({ ...bodyV2, paymentPayload })).toBeUndefined();
    const paymentRequirements = {
      ...requirementsV1,
      outputSchema: null,
      description: null,
      mimeType: null,
    };
    expect(reasonOf({ ...bodyV1, paymentRequirements })).toBeUndefined();
  });
});

describe("a malformed facilitator request", () => {
  test.each([undefined, null, "", 1, [], {}, [bodyV2], { x402Version: 2 }, { paymentPayload: 1 }])(
    "is refused for its payload: %j",
    (body) => {
      expect(reasonOf(body)).toBe("invalid_payload");
    },
  );

  test.each([0, 3, -1, 1.5, "1", null, {}])("is refused for its version: %j", (x402Version) => {
    const { x402Version: _, ...payload } = samplePayloadV2;
    expect(reasonOf({ ...bodyV2, x402Version, paymentPayload: payload })).toBe(
      "invalid_x402_version",
    );
    expect(reasonOf({ ...bodyV2, x402Version })).toBe("invalid_x402_version");
  });

  test("is refused for two versions in one request", () => {
    expect(reasonOf({ ...bodyV2, x402Version: 1 })).toBe("invalid_x402_version");
    expect(reasonOf({ ...bodyV1, x402Version: 2 })).toBe("invalid_x402_version");
  });

  test("is refused for a payload of the other version's shape", () => {
    const paymentPayload = { ...samplePayloadV1, x402Version: 2 };
    expect(reasonOf({ ...bodyV2, paymentPayload })).toBe("invalid_payload");
  });

  test.each([
    undefined,
    null,
    {},
    { ...sampleRequirements, amount: 10_000 },
    { ...sampleRequirements, amount: "1e4" },
    { ...sampleRequirements, network: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp" },
    { ...sampleRequirements, payTo: "0xb8CE59FC3717ada4C02eaDF9682A9e934F625ebb" },
    { ...sampleRequirements, maxTimeoutSeconds: 0 },
    { ...requirementsV1, network: "unheard-of" },
  ])("is refused for its requirements: %j", (paymentRequirements) => {
    expect(reasonOf({ ...bodyV2, paymentRequirements })).toBe("invalid_payment_requirements");
  });

  test("is refused for a key that would pollute a copy's prototype", () => {
    const paymentPayload: unknown = JSON.parse(
      JSON.stringify(samplePayloadV2).replace("{", '{"__proto__":{"x402Version":1},'),
    );
    expect(reasonOf({ ...bodyV2, paymentPayload })).toBe("invalid_payload");
  });

  test("is refused for missing requirements", () => {
    const { paymentRequirements: _, ...body } = bodyV2;
    expect(reasonOf(body)).toBe("invalid_payment_requirements");
  });

  test("is refused with the fault's path, without the input's values", () => {
    const paymentRequirements = { ...sampleRequirements, payTo: "<script>" };
    expect(readFacilitatorArguments(samplePayloadV2, paymentRequirements)).toEqual({
      ok: false,
      reason: "invalid_payment_requirements",
      message: "The member paymentRequirements does not have the right shape at payTo",
    });
  });
});
