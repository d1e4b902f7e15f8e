import { amountSchema } from "../money/amount.ts";

const maxUint128 = 2n ** 128n - 1n;

/** An amount of a channel: a uint128 in the token's smallest unit, from a decimal string. */
export const channelAmountSchema = amountSchema
  .transform(BigInt)
  .refine((amount) => amount <= maxUint128, "expected a uint128 as a decimal string");

/** A uint256 from a decimal string: a time, or a nonce. */
export const uint256Schema = amountSchema.transform(BigInt);
