import type { Network } from "../money/network.ts";
import type { PaymentPayloadV1, PaymentPayloadV2 } from "../x402/payment-payload.ts";
import type { PaymentRequired } from "../x402/payment-required.ts";
import type { PaymentRequirements } from "../x402/payment-requirements.ts";
import type { SettleResponse } from "../x402/settle-response.ts";

/** One honest message of each kind, from which tests depart. */
export const sampleRequirements = {
  scheme: "exact",
  network: "eip155:9745",
  amount: "10000",
  asset: "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb",
  payTo: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
  maxTimeoutSeconds: 300,
  extra: { name: "USDT0", version: "1", decimals: 6 },
} satisfies PaymentRequirements;

export const samplePayloadV1 = {
  x402Version: 1,
  scheme: "exact",
  network: "eip155:9745",
  payload: {
    signature: `0x${"ab".repeat(64)}1b`,
    authorization: {
      from: "0x857b06519E91e3A54538791bDbb0E22373e36b66",
      to: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
      value: "10000",
      validAfter: "0",
      validBefore: "1740672154",
      nonce: `0x${"f3".repeat(32)}`,
    },
  },
} satisfies PaymentPayloadV1;

export const samplePayloadV2 = {
  x402Version: 2,
  payload: samplePayloadV1.payload,
  accepted: sampleRequirements,
  resource: {
    url: "https://seller.example/weather",
    description: "Wetter für Zürich ☀️",
    mimeType: "application/json",
  },
} satisfies PaymentPayloadV2;

export const samplePaymentRequired = {
  x402Version: 2,
  error: "Payment required",
  resource: samplePayloadV2.resource,
  accepts: [sampleRequirements],
  extensions: { "payment-identifier": { info: { required: false } } },
} satisfies PaymentRequired;

export const sampleReceipt = {
  success: true,
  payer: samplePayloadV1.payload.authorization.from,
  transaction: `0x${"12".repeat(32)}`,
  network: "eip155:9745",
  amount: "10000",
} satisfies SettleResponse & { network: Network };

/** Base64 of a text, as a careless or hostile client would make it. */
export function base64Of(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}
