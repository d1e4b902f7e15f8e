import * as z from "zod";
import {
  type Address,
  addressSchema,
  bytes32Schema,
  type Hex,
  toLowerHex,
} from "../money/address.ts";
import { maxWithdrawDelay, minWithdrawDelay } from "./channel-contracts.ts";

/** Seconds for which a payer's withdrawal waits. The contract takes no deposit outside of these. */
export const withdrawDelaySchema = z.int().min(minWithdrawDelay).max(maxWithdrawDelay);

/** An address, read into lower case. */
export const lowerAddressSchema = addressSchema.transform(toLowerHex);

/** 32 bytes, read into lower case: an id in upper case is no second channel. */
export const lowerBytes32Schema = bytes32Schema.transform(toLowerHex);

/**
 * Terms of a channel, which never change: their digest is its id. `payerAuthorizer` signs vouchers;
 * zero means that `payer` does, by EIP-1271 where it has code.
 */
export const channelConfigSchema = z.object({
  payer: lowerAddressSchema,
  payerAuthorizer: lowerAddressSchema,
  receiver: lowerAddressSchema,
  receiverAuthorizer: lowerAddressSchema,
  token: lowerAddressSchema,
  // Any value of its type: one that differs from the offer's is refused with its own reason.
  withdrawDelay: z
    .int()
    .min(0)
    .max(2 ** 40 - 1),
  salt: lowerBytes32Schema,
});

/** Terms of a channel. Hex in lower case. */
export interface ChannelConfig {
  payer: Address;
  payerAuthorizer: Address;
  receiver: Address;
  receiverAuthorizer: Address;
  token: Address;
  /** Seconds. */
  withdrawDelay: number;
  salt: Hex;
}
