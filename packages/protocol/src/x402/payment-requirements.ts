import * as z from "zod";
import { addressSchema } from "../money/address.ts";
import { amountSchema } from "../money/amount.ts";
import { networkNameSchema, networkSchema, parseNetwork } from "../money/network.ts";
import { optionalOrNull } from "./optional-or-null.ts";
import type { ResourceInfo } from "./resource-info.ts";

const scheme = z.string().min(1).max(64);
const extra = z.record(z.string().max(128), z.unknown());
const maxTimeoutSeconds = z.number().int().positive().max(Number.MAX_SAFE_INTEGER);

/** Default for a version 1 offer that does not state how long its payment stays valid. */
const defaultTimeoutSeconds = 300;

/**
 * One acceptable way to pay, in the form of version 2, which is also the internal form. `amount` is
 * in the token's smallest unit. In `extra`, `name` and `version` are the token's EIP-712 domain.
 * `paymentFlow` is the time of settlement, and `assetTransferMethod` is `eip3009` by default.
 */
export const paymentRequirementsSchema = z.object({
  scheme,
  network: networkSchema,
  amount: amountSchema,
  asset: addressSchema,
  payTo: addressSchema,
  maxTimeoutSeconds,
  extra: optionalOrNull(extra),
});

/** One acceptable way to pay, in the form of version 2. */
export type PaymentRequirements = z.infer<typeof paymentRequirementsSchema>;

/**
 * One acceptable way to pay, in the form of version 1. It names its resource, and its network may
 * have a name from before CAIP-2.
 */
export const paymentRequirementsV1Schema = z.object({
  scheme,
  network: networkNameSchema,
  maxAmountRequired: amountSchema,
  resource: z.string().max(4096),
  description: optionalOrNull(z.string().max(4096)),
  mimeType: optionalOrNull(z.string().max(256)),
  outputSchema: z.unknown().optional(),
  payTo: addressSchema,
  maxTimeoutSeconds: maxTimeoutSeconds.default(defaultTimeoutSeconds),
  asset: addressSchema,
  extra: optionalOrNull(extra),
});

/** One acceptable way to pay, in the form of version 1. */
export type PaymentRequirementsV1 = z.infer<typeof paymentRequirementsV1Schema>;

/**
 * Converts an offer of version 2 to version 1. Clients of version 1 read `description`, `mimeType`
 * and an absolute `resource` as mandatory, so they are always there.
 */
export function toPaymentRequirementsV1(options: {
  requirements: PaymentRequirements;
  resource: ResourceInfo;
  /** Name of the network. Default: its CAIP-2 form. */
  networkName?: string | undefined;
}): PaymentRequirementsV1 {
  const { requirements, resource, networkName } = options;
  return {
    scheme: requirements.scheme,
    network: networkName ?? requirements.network,
    maxAmountRequired: requirements.amount,
    resource: resource.url,
    description: resource.description ?? "",
    mimeType: resource.mimeType ?? "",
    payTo: requirements.payTo,
    maxTimeoutSeconds: requirements.maxTimeoutSeconds,
    asset: requirements.asset,
    ...(requirements.extra === undefined ? {} : { extra: requirements.extra }),
  };
}

/**
 * Reads version 1 requirements into the form of version 2.
 *
 * @returns `undefined` when the network's name is unknown.
 */
export function fromPaymentRequirementsV1(
  requirements: PaymentRequirementsV1,
): PaymentRequirements | undefined {
  const network = parseNetwork(requirements.network);
  if (network === undefined) return undefined;
  return {
    scheme: requirements.scheme,
    network,
    amount: requirements.maxAmountRequired,
    asset: requirements.asset,
    payTo: requirements.payTo,
    maxTimeoutSeconds: requirements.maxTimeoutSeconds,
    ...(requirements.extra ? { extra: requirements.extra } : {}),
  };
}
