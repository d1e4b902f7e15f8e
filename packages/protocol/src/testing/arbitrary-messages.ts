import fc from "fast-check";
import { getAddress } from "viem";
import type { Address, Hex } from "../money/address.ts";
import type { Network } from "../money/network.ts";
import type { Authorization, ExactEvmPayload } from "../x402/authorization.ts";
import { formatAuthorization } from "../x402/authorization.ts";
import type { PaymentPayloadV1, PaymentPayloadV2 } from "../x402/payment-payload.ts";
import type { PaymentRequired } from "../x402/payment-required.ts";
import type { PaymentRequirements } from "../x402/payment-requirements.ts";
import type { ResourceInfo } from "../x402/resource-info.ts";
import type { SettleResponse } from "../x402/settle-response.ts";

/** Sources of valid protocol nouns for property tests. */
export const uint256 = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n });
const amount = uint256.map(String);

function hexOf(length: number): fc.Arbitrary<Hex> {
  return fc
    .uint8Array({ minLength: length, maxLength: length })
    .map((bytes): Hex => `0x${Buffer.from(bytes).toString("hex")}`);
}

const bytes32 = hexOf(32);
const lowerCaseAddress: fc.Arbitrary<Address> = hexOf(20);

/** An address in each of the forms in which addresses travel. */
export const address: fc.Arbitrary<Address> = lowerCaseAddress.chain((lower) =>
  fc.constantFrom<Address>(lower, getAddress(lower), `0x${lower.slice(2).toUpperCase()}`),
);

export const network: fc.Arbitrary<Network> = fc
  .integer({ min: 1, max: Number.MAX_SAFE_INTEGER })
  .map((chainId): Network => `eip155:${chainId}`);

export const authorization: fc.Arbitrary<Authorization> = fc.record({
  from: lowerCaseAddress,
  to: lowerCaseAddress,
  value: uint256,
  validAfter: uint256,
  validBefore: uint256,
  nonce: bytes32,
});

const exactEvmPayload: fc.Arbitrary<ExactEvmPayload> = fc.record({
  signature: fc.nat({ max: 130 }).chain(hexOf),
  authorization: authorization.map(formatAuthorization),
});

const text = fc.string({ unit: "grapheme", maxLength: 60 });
const key = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 12 })
  .filter((name) => !["__proto__", "constructor", "prototype"].includes(name));
const extra = fc.dictionary(
  key,
  fc.oneof(
    text,
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => n + 0),
    fc.boolean(),
    fc.array(text, { maxLength: 3 }),
  ),
  { maxKeys: 4, noNullPrototype: true },
);

export const requirements: fc.Arbitrary<PaymentRequirements> = fc.record(
  {
    scheme: fc.constantFrom("exact", "upto"),
    network,
    amount,
    asset: address,
    payTo: address,
    maxTimeoutSeconds: fc.integer({ min: 1 }),
    extra,
  },
  {
    requiredKeys: ["scheme", "network", "amount", "asset", "payTo", "maxTimeoutSeconds"],
    noNullPrototype: true,
  },
);

export const resource: fc.Arbitrary<ResourceInfo> = fc.record(
  { url: fc.webUrl(), description: text, mimeType: fc.constantFrom("application/json", "") },
  { requiredKeys: ["url"], noNullPrototype: true },
);

export const payloadV1: fc.Arbitrary<PaymentPayloadV1> = fc.record(
  {
    x402Version: fc.constant(1),
    scheme: fc.constant("exact"),
    network: fc.oneof(network, fc.constantFrom("base", "base-sepolia", "unheard-of")),
    payload: exactEvmPayload,
  },
  { noNullPrototype: true },
);

export const payloadV2: fc.Arbitrary<PaymentPayloadV2> = fc.record(
  {
    x402Version: fc.constant(2),
    payload: exactEvmPayload,
    accepted: requirements,
    resource,
    extensions: extra,
  },
  { requiredKeys: ["x402Version", "payload", "accepted"], noNullPrototype: true },
);

export const paymentRequired: fc.Arbitrary<PaymentRequired> = fc.record(
  {
    x402Version: fc.constant(2),
    error: text,
    resource,
    accepts: fc.array(requirements, { maxLength: 4 }),
    extensions: extra,
  },
  { requiredKeys: ["x402Version", "resource", "accepts"], noNullPrototype: true },
);

const filledText = text.filter((words) => words !== "");
export const receipt: fc.Arbitrary<SettleResponse> = fc.record(
  {
    success: fc.boolean(),
    errorReason: filledText,
    errorMessage: filledText,
    payer: address,
    transaction: fc.oneof(fc.constant(""), bytes32),
    network,
    amount,
    extensions: extra,
  },
  { requiredKeys: ["success", "transaction", "network"], noNullPrototype: true },
);
