import * as z from "zod";
import {
  type Address,
  addressSchema,
  bytes32Schema,
  type Hex,
  toLowerHex,
} from "../money/address.ts";
import { amountSchema } from "../money/amount.ts";
import type { Network } from "../money/network.ts";

/**
 * A signature as it travels: up to 4 KiB of bytes, since contract accounts choose their own form.
 */
const signatureSchema = z.templateLiteral(["0x", z.string().regex(/^(?:[0-9a-fA-F]{2}){0,4096}$/)]);

/**
 * The payload of an `exact` payment on an EVM chain: an EIP-3009 authorization and its signature.
 * Numbers are decimal strings, times are unix seconds.
 */
export const exactEvmPayloadSchema = z.object({
  signature: signatureSchema,
  authorization: z.object({
    from: addressSchema,
    to: addressSchema,
    value: amountSchema,
    validAfter: amountSchema,
    validBefore: amountSchema,
    nonce: bytes32Schema,
  }),
});

/** The payload of an `exact` payment on an EVM chain, as it travels. */
export type ExactEvmPayload = z.infer<typeof exactEvmPayloadSchema>;

/** An EIP-3009 `TransferWithAuthorization`, in the internal form. Addresses are lower case. */
export interface Authorization {
  from: Address;
  to: Address;
  /** In the token's smallest unit. */
  value: bigint;
  /** Unix seconds; the transfer is possible strictly after this. */
  validAfter: bigint;
  /** Unix seconds; the transfer is possible strictly before this. */
  validBefore: bigint;
  nonce: Hex;
}

/**
 * Identity of an authorization. A contract executes a nonce of a payer once, so equal identities
 * are one payment. All other differences between two messages (version, letter case, form of the
 * signature) are irrelevant. All members are in lower case.
 */
export interface AuthorizationId {
  network: Network;
  asset: Address;
  /** The contract that uses the nonce up, where that is not the asset. */
  authority?: Address | undefined;
  payer: Address;
  nonce: Hex;
}

/** Reads an authorization from its wire form. */
export function parseAuthorization(wire: ExactEvmPayload["authorization"]): Authorization {
  return {
    from: toLowerHex(wire.from),
    to: toLowerHex(wire.to),
    value: BigInt(wire.value),
    validAfter: BigInt(wire.validAfter),
    validBefore: BigInt(wire.validBefore),
    nonce: toLowerHex(wire.nonce),
  };
}

/** Writes an authorization in its wire form. */
export function formatAuthorization(
  authorization: Authorization,
): ExactEvmPayload["authorization"] {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  return {
    from,
    to,
    value: value.toString(),
    validAfter: validAfter.toString(),
    validBefore: validBefore.toString(),
    nonce,
  };
}

/** The identity as one text, for maps and log lines: network, authority, payer, nonce. */
export function authorizationKey(id: AuthorizationId): string {
  return `${id.network}/${id.authority ?? id.asset}/${id.payer}/${id.nonce}`;
}
