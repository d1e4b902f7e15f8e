import type { x402Facilitator } from "@x402/core/facilitator";
import type { FacilitatorClient, HTTPFacilitatorClient } from "@x402/core/server";
import { expectTypeOf } from "vitest";
import type { Network } from "../money/network.ts";
import type { ExactEvmPayload } from "../x402/authorization.ts";
import type {
  PaymentPayload,
  PaymentPayloadV1,
  PaymentPayloadV2,
} from "../x402/payment-payload.ts";
import type { PaymentRequirements, PaymentRequirementsV1 } from "../x402/payment-requirements.ts";
import type { InvalidReason, SettleErrorReason } from "../x402/reason.ts";
import type { SettleResponse } from "../x402/settle-response.ts";
import type { Supported } from "../x402/supported.ts";
import type {
  AnyPaymentPayload,
  AnyPaymentRequirements,
  Facilitator,
  ReservingFacilitator,
} from "./facilitator.ts";

// The reference's facilitators fit where ours do.
expectTypeOf<x402Facilitator>().toExtend<Facilitator>();
expectTypeOf<HTTPFacilitatorClient>().toExtend<Facilitator>();
expectTypeOf<ReservingFacilitator>().toExtend<Facilitator>();

// A facilitator of ours that settles on networks in CAIP-2 fits where the reference's do.
interface Caip2Facilitator extends Facilitator {
  settle(
    ...parameters: Parameters<Facilitator["settle"]>
  ): Promise<SettleResponse & { network: Network }>;
  getSupported(): Promise<Supported>;
}
expectTypeOf<Caip2Facilitator>().toExtend<FacilitatorClient>();

// Our own messages are accepted by any facilitator's types.
expectTypeOf<PaymentPayload>().toExtend<AnyPaymentPayload>();
expectTypeOf<PaymentRequirements>().toExtend<AnyPaymentRequirements>();
expectTypeOf<PaymentRequirementsV1>().toExtend<AnyPaymentRequirements>();

// The version discriminates the payloads.
expectTypeOf<Extract<PaymentPayload, { x402Version: 1 }>>().toEqualTypeOf<PaymentPayloadV1>();
expectTypeOf<Extract<PaymentPayload, { x402Version: 2 }>>().toEqualTypeOf<PaymentPayloadV2>();
expectTypeOf<PaymentPayloadV1>().not.toHaveProperty("accepted");

// Hex and networks are not plain strings.
expectTypeOf<ExactEvmPayload["signature"]>().toEqualTypeOf<`0x${string}`>();
expectTypeOf<ExactEvmPayload["authorization"]["from"]>().toEqualTypeOf<`0x${string}`>();
expectTypeOf<PaymentRequirements["network"]>().toEqualTypeOf<Network>();
expectTypeOf<string>().not.toExtend<Network>();

// Every reason for an invalid payment is also a reason for a failed settlement.
expectTypeOf<InvalidReason>().toExtend<SettleErrorReason>();

// Absent members of an answer are omitted, not undefined, since it is JSON.
expectTypeOf<{
  success: true;
  transaction: "";
  network: "eip155:1";
  payer: undefined;
}>().not.toExtend<SettleResponse>();
