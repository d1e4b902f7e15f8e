import {
  type FacilitatorRequest,
  type PaymentPayload,
  type PaymentRequirements,
  type PaymentRequirementsV1,
  type ResourceInfo,
  toPaymentRequirementsV1,
} from "@coinslot/protocol";

/** The two arguments of a facilitator's verify and settle, in the form of the payment's version. */
export interface ForeignRequest {
  paymentPayload: PaymentPayload;
  paymentRequirements: PaymentRequirements | PaymentRequirementsV1;
}

/**
 * Writes a request as a facilitator of any implementation expects it. Version 1 has requirements of
 * its own form, and names the network as that facilitator lists it. No signature covers that name.
 * A request that came in that form goes on as it came.
 */
export function toForeignRequest(options: {
  request: FacilitatorRequest;
  resource: ResourceInfo | undefined;
  /** The facilitator's name of the network in version 1; default the payment's. */
  networkName?: string | undefined;
}): ForeignRequest {
  const { request, resource } = options;
  const { paymentPayload, paymentRequirements, received } = request;
  if (paymentPayload.x402Version === 2) return { paymentPayload, paymentRequirements };
  const networkName = options.networkName ?? paymentPayload.network;
  return {
    paymentPayload: { ...paymentPayload, network: networkName },
    paymentRequirements:
      "maxAmountRequired" in received
        ? { ...received, network: options.networkName ?? received.network }
        : toPaymentRequirementsV1({
            requirements: paymentRequirements,
            resource: resource ?? { url: "" },
            networkName,
          }),
  };
}
