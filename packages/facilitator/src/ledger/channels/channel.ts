import type { Address, ChannelConfig, Hex, Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Selectable } from "kysely";
import type { ChannelsTable, ChannelTermsTable } from "../channels-schema.ts";

/** Identity of a channel. Hex in lower case. */
export interface ChannelKey {
  network: Network;
  /** The escrow contract. */
  contract: Address;
  channelId: Hex;
}

/** The last charge of a channel: the same request may have its answer again. */
export interface LastCharge {
  id: string;
  fingerprint: string;
  keyHash: string | undefined;
  amount: bigint;
  at: number;
  isDelivered: boolean;
  /** The process that holds its answer; `undefined`: any process may hand it over again. */
  owner: string | undefined;
  /** Runs of its handler that have begun. */
  runs: number;
}

/** A channel as the ledger has it. Amounts are in the token's smallest unit. */
export interface Channel extends ChannelKey {
  /** All that was charged on it. */
  charged: bigint;
  /** The voucher that covers `charged`; `undefined` before the first charge. */
  voucher: { ceiling: bigint; signature: Hex } | undefined;
  /** The voucher before that one. It covers what was charged without the last charge. */
  voucherBefore?: { ceiling: bigint; signature: Hex } | undefined;
  /** The highest ceiling that is accepted. */
  secure: bigint;
  lost: bigint;
  isRefunding: boolean;
  /** The request whose handler runs, where one has reserved. */
  run: { token: string; owner: string } | undefined;
  last: LastCharge | undefined;
}

/** The columns of a channel, for statements that are compiled once. */
export const channelColumns = [
  ...(["channels.network", "channels.contract", "channels.channel_id", "charged"] as const),
  ...(["ceiling", "signature", "before_ceiling", "before_signature", "secure", "lost"] as const),
  ...(["refunding", "running_token", "running_owner", "last_id", "last_fingerprint"] as const),
  ...(["last_key_hash", "last_amount", "last_at", "last_delivered_at", "last_owner"] as const),
  "last_runs",
] as const;

/** The columns of a key. */
export function keyColumns({ network, contract, channelId }: ChannelKey) {
  return { network, contract, channel_id: channelId };
}

export function toChannel(row: Selectable<ChannelsTable>, { amount }: Dialect): Channel {
  const { network, contract, channel_id, ceiling, signature, running_token, running_owner } = row;
  const { last_id, last_fingerprint, last_amount, last_at } = row;
  const hasLast = last_id !== null && last_fingerprint !== null && last_at !== null;
  return {
    network,
    contract,
    channelId: channel_id,
    charged: amount.decode(row.charged),
    voucher:
      ceiling === null || signature === null
        ? undefined
        : { ceiling: amount.decode(ceiling), signature },
    voucherBefore:
      row.before_ceiling === null || row.before_signature === null
        ? undefined
        : { ceiling: amount.decode(row.before_ceiling), signature: row.before_signature },
    secure: amount.decode(row.secure),
    lost: amount.decode(row.lost),
    isRefunding: row.refunding === 1,
    run:
      running_token === null || running_owner === null
        ? undefined
        : { token: running_token, owner: running_owner },
    last: hasLast
      ? {
          id: last_id,
          fingerprint: last_fingerprint,
          keyHash: row.last_key_hash ?? undefined,
          amount: last_amount === null ? 0n : amount.decode(last_amount),
          at: last_at,
          isDelivered: row.last_delivered_at !== null,
          owner: row.last_owner ?? undefined,
          runs: row.last_runs,
        }
      : undefined,
  };
}

export function toChannelConfig(row: Selectable<ChannelTermsTable>): ChannelConfig {
  return {
    payer: row.payer,
    payerAuthorizer: row.payer_authorizer,
    receiver: row.receiver,
    receiverAuthorizer: row.receiver_authorizer,
    token: row.token,
    withdrawDelay: row.withdraw_delay,
    salt: row.salt,
  };
}
