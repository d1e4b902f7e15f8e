import {
  addressSchema,
  amountSchema,
  bytes32Schema,
  type ChannelConfig,
  type Hex,
  type Network,
  networkSchema,
  toLowerHex,
} from "@coinslot/protocol";
import * as z from "zod";

/** An authorized deposit that the chain does not show yet. */
export interface OpenDeposit {
  amount: bigint;
  /** With the channel's id it makes the nonce of the authorization. */
  salt: Hex;
  /** Unix seconds. */
  validBefore: number;
  /** True if the seller's receipt says that it was executed. */
  isReported: boolean;
}

/** A channel of this buyer, as its store has it. Amounts are in the token's smallest unit. */
export interface ChannelRecord {
  id: Hex;
  network: Network;
  config: ChannelConfig;
  /** Origin of the seller, and the URL of the last purchase there. */
  origin: string;
  url: string;
  lane: number;
  /** Highest ceiling that was ever signed. It never falls. */
  ceiling: bigint;
  /** Charged so far, as the seller has shown it. The next voucher is for this and the price. */
  charged: bigint;
  /** Highest `charged` that was ever booked as spent. */
  spent: bigint;
  /** Balance and claimed sum of the contract, as the own node returned them last. */
  balance: bigint;
  claimed: bigint;
  deposit: OpenDeposit | undefined;
  /** True from the start of a timed withdrawal to its end. */
  isWithdrawing: boolean;
  /** Unix milliseconds of the last purchase. */
  usedAt: number;
}

const stored = amountSchema.transform(BigInt);
const lowerAddress = addressSchema.transform(toLowerHex);
const lowerBytes32 = bytes32Schema.transform(toLowerHex);

const rowSchema = z.object({
  id: lowerBytes32,
  network: networkSchema,
  payer: lowerAddress,
  payer_authorizer: lowerAddress,
  receiver: lowerAddress,
  receiver_authorizer: lowerAddress,
  token: lowerAddress,
  withdraw_delay: z.int(),
  salt: lowerBytes32,
  origin: z.string(),
  url: z.string(),
  lane: z.int(),
  ceiling: stored,
  charged: stored,
  spent: stored,
  balance: stored,
  claimed: stored,
  deposit_amount: stored.nullable(),
  deposit_salt: lowerBytes32.nullable(),
  deposit_end: z.int().nullable(),
  deposit_reported: z.int().nullable(),
  withdrawing: z.int(),
  used_at: z.int(),
});

/** Reads a row of the store. */
export function parseRecord(row: unknown): ChannelRecord {
  const parsed = rowSchema.parse(row);
  const { id, network, origin, url, lane, ceiling, charged, spent, balance, claimed } = parsed;
  const { deposit_amount: amount, deposit_salt: salt, deposit_end: validBefore } = parsed;
  return {
    ...{ id, network, origin, url, lane, ceiling, charged, spent, balance, claimed },
    config: {
      payer: parsed.payer,
      payerAuthorizer: parsed.payer_authorizer,
      receiver: parsed.receiver,
      receiverAuthorizer: parsed.receiver_authorizer,
      token: parsed.token,
      withdrawDelay: parsed.withdraw_delay,
      salt: parsed.salt,
    },
    deposit:
      amount === null || salt === null || validBefore === null
        ? undefined
        : { amount, salt, validBefore, isReported: parsed.deposit_reported === 1 },
    isWithdrawing: parsed.withdrawing === 1,
    usedAt: parsed.used_at,
  };
}

/** Writes a record as a row: the values in the order of `columns`. */
export function toRow(record: ChannelRecord): (string | number | null)[] {
  const { config, deposit } = record;
  return [
    record.id,
    record.network,
    config.payer,
    config.payerAuthorizer,
    config.receiver,
    config.receiverAuthorizer,
    config.token,
    config.withdrawDelay,
    config.salt,
    record.origin,
    record.url,
    record.lane,
    `${record.ceiling}`,
    `${record.charged}`,
    `${record.spent}`,
    `${record.balance}`,
    `${record.claimed}`,
    deposit === undefined ? null : `${deposit.amount}`,
    deposit?.salt ?? null,
    deposit?.validBefore ?? null,
    deposit === undefined ? null : Number(deposit.isReported),
    Number(record.isWithdrawing),
    record.usedAt,
  ];
}

/** Columns of a record, in the order of `toRow`. */
export const columns = Object.keys(rowSchema.shape);

/** Money in the escrow that a withdrawal would bring back: all that is not charged. */
export function lockedIn({ balance, charged, deposit }: ChannelRecord): bigint {
  const funds = balance + (deposit?.amount ?? 0n);
  return funds > charged ? funds - charged : 0n;
}

/**
 * Money that the seller may still claim and that is not booked as spent yet.
 *
 * @param signed a ceiling that may have been signed, by another file
 */
export function exposureOf(
  { ceiling, balance, deposit, spent }: ChannelRecord,
  signed = 0n,
): bigint {
  const claimable = smaller(larger(ceiling, signed), balance + (deposit?.amount ?? 0n));
  return claimable > spent ? claimable - spent : 0n;
}

/** The larger of two amounts. */
export function larger(one: bigint, other: bigint): bigint {
  if (one > other) return one;
  return other;
}

/** The smaller of two amounts. */
export function smaller(one: bigint, other: bigint): bigint {
  if (one < other) return one;
  return other;
}
