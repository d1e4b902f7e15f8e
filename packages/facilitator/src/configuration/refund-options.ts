import type { Address, Network } from "@coinslot/protocol";
import { isWellFormedAddress, toLowerHex } from "@coinslot/protocol";
import type { LocalAccount } from "viem";
import { mnemonicToAccount, privateKeyToAccount } from "viem/accounts";
import { createHashSigner, type HashSigner, type SignHash } from "../settle/relay/remote-signer.ts";
import { findSeedPhraseProblem } from "./seed-phrase.ts";

/**
 * The float: the account that pays refunds. It needs tokens and no gas. Its address is its own: no
 * relayer, and no `payTo`. Without a key, refunds wait for a signature made elsewhere.
 */
export type FloatAccount =
  | {
      /** 12 to 24 English words. */
      seedPhrase: string | undefined;
      /** Index of the account in the seed phrase. Default 0. */
      accountIndex?: number | undefined;
    }
  | {
      /** 32 bytes in hex. */
      privateKey: string | undefined;
    }
  | {
      /** A key elsewhere, or a viem account. */
      account: HashSigner | LocalAccount;
    }
  | {
      /** The key is on a machine without a network: `coinslot refunds sign`. */
      address: Address;
    };

/** A limit of one token. */
export interface FloatLimit {
  network: Network;
  asset: Address;
  /** In the token's smallest unit. */
  maxPerDay: bigint;
}

/** Refunds of a facilitator. The same in all processes of a ledger. */
export type RefundOptions = FloatAccount & {
  /** Accounts that were the float before: the chain is asked for their refunds, too. */
  formerFloats?: readonly Address[] | undefined;
  /**
   * Most that the float gives back in a day (UTC), of each token on each network, in smallest
   * units. Default 100,000,000: a hundred, of six decimals. Refunds beyond it wait.
   */
  maxPerDay?: bigint | readonly FloatLimit[] | undefined;
  /**
   * Payers whose account is a contract: `review` waits for the operator's word, `refund` sends to
   * the payer's own address. Default `review`.
   */
  payersWithCode?: "review" | "refund" | undefined;
  /** Validity of an authorization. Default 3,600; between 120 and 86,400. */
  validForSeconds?: number | undefined;
  /**
   * Blocks that one look for the use of a nonce reads, at most: a refund may have been executed
   * before a backup was restored. Later looks go on below. Default 100,000.
   */
  searchBlocks?: number | undefined;
  /** Refunds that a route's policy makes. */
  automatic?:
    | {
        /** Default 10. Beyond it, a payer's refunds of a day (UTC) are left to the operator. */
        maxPerPayerPerDay?: number | undefined;
        /**
         * Most that all of them together give back in a day (UTC). Of each token and network, in
         * smallest units. Default: half of the float's `maxPerDay`, so that the operator has the
         * other half. Payments beyond it wait for the next day.
         */
        maxPerDay?: bigint | readonly FloatLimit[] | undefined;
        /**
         * Cost of a refund's gas, in the token's smallest unit. Payments below twice as much are
         * not given back by themselves. Default 1,000: a tenth of a cent, of six decimals.
         */
        gasCost?: bigint | undefined;
      }
    | undefined;
};

/** The options of refunds, read. */
export interface RefundSettings {
  /** In lower case; `undefined`: none is configured. */
  float: Address | undefined;
  /** `undefined`: refunds wait for a signature. */
  sign: SignHash | undefined;
  formerFloats: readonly Address[];
  maxPerDay(token: { network: Network; asset: Address }): bigint;
  payersWithCode: "review" | "refund";
  validForSeconds: number;
  searchBlocks: number;
  maxPerPayerPerDay: number;
  automaticMaxPerDay(token: { network: Network; asset: Address }): bigint;
  gasCost: bigint;
}

const defaultMaxPerDay = 100_000_000n;
const privateKeyForm = /^(?:0x)?([0-9a-fA-F]{64})$/;
const maxIndex = 2 ** 31 - 1;

/** Reads the options of refunds. No problem repeats a secret. Never throws. */
export function readRefundOptions(options: RefundOptions | undefined): {
  settings: RefundSettings;
  problems: string[];
} {
  const problems: string[] = [];
  const account = options === undefined ? {} : readAccount(options, problems);
  const { formerFloats = [], maxPerDay = defaultMaxPerDay, automatic = {} } = options ?? {};
  const { payersWithCode = "review", validForSeconds = 3_600 } = options ?? {};
  const { searchBlocks = 100_000 } = options ?? {};
  const { maxPerPayerPerDay = 10, gasCost = 1_000n } = automatic;
  if (!formerFloats.every(isWellFormedAddress)) {
    problems.push("refunds.formerFloats must be addresses");
  }
  checkLimits("refunds.maxPerDay", maxPerDay, problems);
  if (automatic.maxPerDay !== undefined) {
    checkLimits("refunds.automatic.maxPerDay", automatic.maxPerDay, problems);
  }
  if (!["review", "refund"].includes(payersWithCode)) {
    problems.push('refunds.payersWithCode must be "review" or "refund"');
  }
  if (!isIntegerBetween(validForSeconds, 120, 86_400)) {
    problems.push("refunds.validForSeconds must be a whole number from 120 to 86400");
  }
  if (!isIntegerBetween(searchBlocks, 1, 10_000_000)) {
    problems.push("refunds.searchBlocks must be a whole number from 1 to 10000000");
  }
  if (!isIntegerBetween(maxPerPayerPerDay, 0, 1_000_000)) {
    problems.push("refunds.automatic.maxPerPayerPerDay must be a whole number, not negative");
  }
  if (typeof gasCost !== "bigint" || gasCost < 0n) {
    problems.push("refunds.automatic.gasCost must be a bigint, not negative");
  }
  const floatMaxPerDay = readLimits(maxPerDay);
  const automaticMaxPerDay =
    automatic.maxPerDay === undefined
      ? (token: Token) => floatMaxPerDay(token) / 2n
      : readLimits(automatic.maxPerDay);
  return {
    problems,
    settings: {
      float: account.float,
      sign: account.sign,
      formerFloats: formerFloats.map(toLowerHex),
      maxPerDay: floatMaxPerDay,
      payersWithCode,
      validForSeconds,
      searchBlocks,
      maxPerPayerPerDay,
      automaticMaxPerDay,
      gasCost,
    },
  };
}

interface Token {
  network: Network;
  asset: Address;
}

/** A limit of a day: one for every token, or one for each that is listed. */
type Limits = bigint | readonly FloatLimit[];

function checkLimits(name: string, limits: Limits, problems: string[]): void {
  const amounts = typeof limits === "bigint" ? [limits] : limits.map((each) => each.maxPerDay);
  if (amounts.some((amount) => typeof amount !== "bigint" || amount < 0n)) {
    problems.push(`${name} must be a bigint, or a list of them by token, not negative`);
  }
}

/** The limit of a token; 0 where others are listed, and it is not. */
function readLimits(limits: Limits): (token: Token) => bigint {
  if (typeof limits === "bigint") return () => limits;
  const byToken = new Map(
    limits.map((each) => [`${each.network}/${each.asset.toLowerCase()}`, each.maxPerDay]),
  );
  return ({ network, asset }) => byToken.get(`${network}/${asset}`) ?? 0n;
}

interface ReadAccount {
  float?: Address;
  sign?: SignHash;
}

function readAccount(options: FloatAccount, problems: string[]): ReadAccount {
  if ("seedPhrase" in options) return readSeedPhrase(options, problems);
  if ("privateKey" in options) return readPrivateKey(options.privateKey, problems);
  const { address } = "account" in options ? options.account : options;
  if (typeof address !== "string" || !isWellFormedAddress(address)) {
    problems.push("refunds needs seedPhrase, privateKey, account or the address of the float");
    return {};
  }
  const float = toLowerHex(address);
  if (!("account" in options)) return { float };
  const { account } = options;
  if (typeof account.sign !== "function") {
    problems.push("refunds.account has no sign");
    return { float };
  }
  const sign = account.sign as HashSigner["sign"];
  return { float, sign: createHashSigner({ address, sign }) };
}

function readSeedPhrase(
  options: { seedPhrase: string | undefined; accountIndex?: number | undefined },
  problems: string[],
): ReadAccount {
  const { seedPhrase, accountIndex = 0 } = options;
  const phrase = seedPhrase?.normalize("NFKD").trim().split(/\s+/).join(" ").toLowerCase();
  const problem = phrase ? findSeedPhraseProblem(phrase) : "is not set";
  if (!isIntegerBetween(accountIndex, 0, maxIndex)) {
    problems.push("refunds.accountIndex must be a whole number, 0 for the first account");
    return {};
  }
  if (problem !== undefined || phrase === undefined) {
    problems.push(`refunds.seedPhrase ${problem}`);
    return {};
  }
  return localFloat(mnemonicToAccount(phrase, { addressIndex: accountIndex }));
}

function readPrivateKey(text: string | undefined, problems: string[]): ReadAccount {
  const digits = privateKeyForm.exec(text?.trim() ?? "")?.[1];
  if (digits === undefined) {
    problems.push("refunds.privateKey must be 32 bytes in hex: 64 digits, with or without 0x");
    return {};
  }
  try {
    return localFloat(privateKeyToAccount(`0x${digits}`));
  } catch {
    // The cause would repeat the key.
    problems.push("refunds.privateKey is outside the curve: it is zero, or too large");
    return {};
  }
}

function localFloat({
  address,
  sign,
}: Pick<ReturnType<typeof privateKeyToAccount>, "address" | "sign">): ReadAccount {
  return { float: toLowerHex(address), sign: (hash) => sign({ hash }) };
}

function isIntegerBetween(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most;
}
