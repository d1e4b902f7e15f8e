import {
  type Address,
  channelContracts,
  isSameAddress,
  isWellFormedAddress,
  maxWithdrawDelay,
  minWithdrawDelay,
  type Network,
  toLowerHex,
} from "@coinslot/protocol";
import type { LocalAccount } from "viem";
import { mnemonicToAccount, privateKeyToAccount } from "viem/accounts";
import {
  type ChannelSettings,
  type ClaimSigner,
  defaultDepositLimits,
  defaultDepositWorth,
} from "../channels/channel-settings.ts";
import { createHashSigner, type HashSigner } from "../settle/relay/remote-signer.ts";
import type { RelayerOptions } from "./relayer-account.ts";
import { findSeedPhraseProblem } from "./seed-phrase.ts";

/** A key that signs claims of channels. It needs no gas, and can redirect no money. */
export type ClaimAccount =
  | {
      /** 12 to 24 English words. The account is at `m/44'/60'/4020'/0/<index>`. */
      seedPhrase: string | undefined;
      /** Default 0. */
      accountIndex?: number | undefined;
    }
  | {
      /** 32 bytes in hex. */
      privateKey: string | undefined;
    }
  | {
      /** A key elsewhere, or a viem account. */
      account: HashSigner | LocalAccount;
    };

/** Payment channels of a facilitator. The same in all processes of a ledger. */
export interface ChannelOptions {
  /**
   * The key of the channels' `receiverAuthorizer`. It is in the config of every channel, so change
   * it like an address. Default: derived from the seed phrase of the first network's relayer.
   */
  authorizer?: ClaimAccount | undefined;
  /** Keys that were it before: their channels are claimed until they are drained. */
  formerAuthorizers?: readonly ClaimAccount[] | undefined;
  /**
   * Unclaimed money of one channel, or of one signer, above which it is claimed, in the token's
   * smallest unit. Default 1,000,000: one, of six decimals. Selling stops at four times as much.
   */
  mostAtRisk?: bigint | undefined;
  /** The oldest charge waits for this long, and a third of its `withdrawDelay`. Default 3,600. */
  claimAfterSeconds?: number | undefined;
  /**
   * Cost of a claim's row, in the token's smallest unit. Less than that is never claimed. Default
   * 1,000: a tenth of a cent, of six decimals.
   */
  claimCost?: bigint | undefined;
  /**
   * Claims all that is unclaimed and worth its gas before the close, and waits for as long, at most
   * 600. For a seller that stops for a while: a restart claims in any case. Default 0: none.
   */
  claimAtCloseSeconds?: number | undefined;
  /** Shortest `withdrawDelay` of the terms that are offered. Default 900, the shortest of all. */
  withdrawDelaySeconds?: number | undefined;
  /**
   * Refunds of one signer in a day. Each costs gas of the seller's, and a buyer beyond it has the
   * timed withdrawal. Default 8.
   */
  maxRefundsPerSigner?: number | undefined;
  /** Refunds of a network in an hour: a signer costs nothing. Default 60. */
  maxRefundsPerHour?: number | undefined;
  /**
   * Deposits of one signer in a day, whose gas the seller pays. Default 200. A hosted facilitator's
   * callers have the default.
   */
  maxDepositsPerSigner?: number | undefined;
  /** Deposits of one payer in a day that a transaction carried in vain. Default 3. */
  maxFailedDepositsPerPayer?: number | undefined;
  /**
   * A deposit is worth at least this many times the gas of itself, its claim and its settle. That
   * gas is nine rows of a claim: 9 × `claimCost`. A route's `minDeposit` cannot lower it. Default:
   * 5 where `claimCost` is given; 1 where the cost of gas in the token is not known.
   */
  minDepositWorth?: number | undefined;
  /** The escrow contract. Default: the published one. */
  contract?: Address | undefined;
  /**
   * Networks with channels. On one that is left out nothing is sold by them, and nothing is
   * claimed. Default: all of the facilitator. The start fails where a chain lacks the contracts.
   */
  networks?: readonly Network[] | undefined;
}

const privateKeyForm = /^(?:0x)?([0-9a-fA-F]{64})$/;
const maxCloseSeconds = 600;
const coin = "m/44'/60'/4020'/0/";

/** Reads the options of channels. No problem repeats a secret. Never throws. */
export function readChannelOptions(
  options: ChannelOptions | undefined,
  relayer: RelayerOptions | undefined,
  networks: readonly { network: Network; relayers: readonly { address: Address }[] }[],
): { settings: ChannelSettings | undefined; problems: string[] } {
  if (options === undefined) return { settings: undefined, problems: [] };
  const problems: string[] = [];
  const { formerAuthorizers = [], mostAtRisk = 1_000_000n, claimCost = 1_000n } = options;
  const { claimAfterSeconds = 3_600, withdrawDelaySeconds = minWithdrawDelay } = options;
  const { claimAtCloseSeconds = 0 } = options;
  const { maxRefundsPerSigner = 8, maxRefundsPerHour = 60 } = options;
  const {
    maxDepositsPerSigner = defaultDepositLimits.perSigner,
    maxFailedDepositsPerPayer = defaultDepositLimits.failedPerPayer,
    minDepositWorth = options.claimCost === undefined ? 1 : defaultDepositWorth,
  } = options;
  const { contract = channelContracts.settlement } = options;
  const given = [options.authorizer ?? seedOf(relayer), ...formerAuthorizers];
  const signers = given.flatMap((account, index) => {
    const place = index === 0 ? "channels.authorizer" : `channels.formerAuthorizers[${index - 1}]`;
    return readClaimAccount(account, place, problems) ?? [];
  });
  for (const [index, { address }] of signers.entries()) {
    if (signers.slice(0, index).some((each) => isSameAddress(each.address, address))) {
      problems.push(`channels: ${address} is named twice`);
    }
  }
  for (const { network, relayers } of networks) {
    if (relayers.some((each) => signers.some((key) => isSameAddress(key.address, each.address)))) {
      problems.push(`channels: the authorizer is a relayer of ${network}: give it its own key`);
    }
  }
  if (typeof mostAtRisk !== "bigint" || mostAtRisk <= 0n) {
    problems.push("channels.mostAtRisk must be a bigint, and more than 0");
  }
  if (typeof claimCost !== "bigint" || claimCost < 0n) {
    problems.push("channels.claimCost must be a bigint, not negative");
  }
  if (!(claimAfterSeconds >= 1 && claimAfterSeconds <= maxWithdrawDelay)) {
    problems.push(`channels.claimAfterSeconds must be from 1 to ${maxWithdrawDelay}`);
  }
  if (!(claimAtCloseSeconds >= 0 && claimAtCloseSeconds <= maxCloseSeconds)) {
    problems.push(`channels.claimAtCloseSeconds must be from 0 to ${maxCloseSeconds}`);
  }
  if (!(withdrawDelaySeconds >= minWithdrawDelay && withdrawDelaySeconds <= maxWithdrawDelay)) {
    problems.push(
      `channels.withdrawDelaySeconds must be from ${minWithdrawDelay} to ${maxWithdrawDelay}`,
    );
  }
  const counts = {
    maxRefundsPerSigner,
    maxRefundsPerHour,
    maxDepositsPerSigner,
    maxFailedDepositsPerPayer,
    minDepositWorth,
  };
  for (const [name, limit] of Object.entries(counts)) {
    if (Number.isInteger(limit) && limit >= 1 && limit <= 10_000) continue;
    problems.push(`channels.${name} must be a whole number from 1 to 10000`);
  }
  if (!isWellFormedAddress(contract)) problems.push("channels.contract must be an address");
  const named = options.networks ?? networks.map(({ network }) => network);
  if (options.networks?.length === 0) problems.push("channels.networks is empty: name one");
  for (const network of named) {
    if (networks.some((each) => each.network === network)) continue;
    problems.push(`channels.networks: the facilitator does not serve ${network}`);
  }
  return {
    problems,
    settings: {
      contract: toLowerHex(contract),
      networks: new Set(named),
      signers,
      mostAtRisk,
      claimAfterMs: claimAfterSeconds * 1_000,
      idleMs: 600_000,
      claimCost,
      claimAtCloseMs: claimAtCloseSeconds * 1_000,
      withdrawDelay: withdrawDelaySeconds,
      refundLimits: { perSigner: maxRefundsPerSigner, perHour: maxRefundsPerHour },
      depositLimits: {
        perSigner: maxDepositsPerSigner,
        failedPerPayer: maxFailedDepositsPerPayer,
      },
      minDepositWorth,
    },
  };
}

/** The seed phrase of a relayer, whose own addresses are at another path. */
function seedOf(relayer: RelayerOptions | undefined): ClaimAccount | undefined {
  if (typeof relayer === "string") {
    return /\S\s+\S/.test(relayer) ? { seedPhrase: relayer } : undefined;
  }
  if (typeof relayer !== "object" || relayer === null || !("seedPhrase" in relayer)) {
    return undefined;
  }
  return { seedPhrase: relayer.seedPhrase };
}

/** Reads the key of claims. Its problems repeat no secret. */
export function readClaimAccount(
  options: ClaimAccount | undefined,
  place: string,
  problems: string[],
): ClaimSigner | undefined {
  if (options === undefined) {
    problems.push(`${place} is not set, and the relayer has no seed phrase to derive it from`);
    return undefined;
  }
  if ("seedPhrase" in options) return readSeedPhrase(options, place, problems);
  if ("privateKey" in options) {
    const digits = privateKeyForm.exec(options.privateKey?.trim() ?? "")?.[1];
    try {
      if (digits !== undefined) return localSigner(privateKeyToAccount(`0x${digits}`));
    } catch {
      // The cause would repeat the key.
    }
    problems.push(`${place}.privateKey must be 32 bytes in hex: 64 digits, with or without 0x`);
    return undefined;
  }
  const { account } = options;
  if (!isWellFormedAddress(account.address) || typeof account.sign !== "function") {
    problems.push(`${place}.account needs an address and sign`);
    return undefined;
  }
  const sign = account.sign as HashSigner["sign"];
  const { address } = account;
  return { address: toLowerHex(address), sign: createHashSigner({ address, sign }) };
}

function readSeedPhrase(
  options: { seedPhrase: string | undefined; accountIndex?: number | undefined },
  place: string,
  problems: string[],
): ClaimSigner | undefined {
  const { seedPhrase, accountIndex = 0 } = options;
  const phrase = seedPhrase?.normalize("NFKD").trim().split(/\s+/).join(" ").toLowerCase();
  const problem = phrase ? findSeedPhraseProblem(phrase) : "is not set";
  if (!Number.isInteger(accountIndex) || accountIndex < 0 || accountIndex >= 2 ** 31) {
    problems.push(`${place}.accountIndex must be a whole number, 0 for the first account`);
    return undefined;
  }
  if (problem !== undefined || phrase === undefined) {
    problems.push(`${place}.seedPhrase ${problem}`);
    return undefined;
  }
  return localSigner(mnemonicToAccount(phrase, { path: `${coin}${accountIndex}` }));
}

function localSigner({
  address,
  sign,
}: Pick<ReturnType<typeof privateKeyToAccount>, "address" | "sign">): ClaimSigner {
  return { address: toLowerHex(address), sign: (hash) => sign({ hash }) };
}
