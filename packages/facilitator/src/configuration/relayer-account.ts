import { type Hex, isSameAddress, isWellFormedAddress } from "@coinslot/protocol";
import type { LocalAccount } from "viem";
import { mnemonicToAccount, privateKeyToAccount } from "viem/accounts";
import { createLocalSigner } from "../settle/relay/local-signer.ts";
import type { RelayerSigner } from "../settle/relay/relayer-signer.ts";
import { createRemoteSigner, type HashSigner } from "../settle/relay/remote-signer.ts";
import { findSeedPhraseProblem } from "./seed-phrase.ts";

/**
 * The account whose gas pays for settlements. It is a BIP-39 seed phrase or a private key, either
 * of them also as a plain string. A key elsewhere is `{ address, sign }`, or a viem account.
 * Members may be `undefined` so that `process.env` can be passed. `createFacilitator` reports that
 * as a problem.
 *
 * A seed phrase gives the addresses at `m/44'/60'/0'/0/<index>`, as wallets number their accounts.
 */
export type RelayerOptions =
  | string
  | {
      /** 12 to 24 English words. */
      seedPhrase: string | undefined;
      /** Index of the account in the seed phrase. Default 0. */
      accountIndex?: number | undefined;
      /** Number of addresses, from that account on, each of which must be funded. Default 1. */
      addressCount?: number | undefined;
    }
  | {
      /** 32 bytes in hex. */
      privateKey: string | undefined;
    }
  | HashSigner
  | LocalAccount
  /** One for each address, each of which must be funded. */
  | readonly (HashSigner | LocalAccount)[];

/** Either the accounts that send transactions, or the problems. No problem repeats the secret. */
export type ReadRelayer =
  | { ok: true; accounts: readonly [RelayerSigner, ...RelayerSigner[]] }
  | { ok: false; problems: string[] };

const maxAddresses = 64;
const maxIndex = 2 ** 31 - 1 - maxAddresses;
const privateKeyForm = /^(?:0x)?([0-9a-fA-F]{64})$/;
const neither =
  "relayer is neither a seed phrase of 12 to 24 words nor a private key: 64 digits, with or without 0x";

/** Derives the accounts of a relayer. Never throws. */
export function readRelayer(options: RelayerOptions | undefined): ReadRelayer {
  if (options === undefined || options === "") {
    return fail(
      "relayer is not set: give a seed phrase or a private key, e.g. from the environment",
    );
  }
  if (typeof options === "string") {
    if (privateKeyForm.test(options.trim())) return readPrivateKey(options);
    // One word is no phrase: most likely it is a key with a digit too few.
    return /\S\s+\S/.test(options) ? readSeedPhrase({ seedPhrase: options }) : fail(neither);
  }
  if (typeof options !== "object" || options === null) {
    return fail(
      "relayer must be a seed phrase, a private key, a viem account or { address, sign }",
    );
  }
  if ("seedPhrase" in options) return readSeedPhrase(options);
  if ("privateKey" in options) return readPrivateKey(options.privateKey);
  if ("address" in options) return readSigners([options]);
  return readSigners(options);
}

/**
 * Derives the accounts of retiring relayers. One that is still a relayer, or is named twice, is a
 * problem.
 */
export function readRetiring(
  options: readonly (RelayerOptions | undefined)[],
  relayers: readonly RelayerSigner[],
): { accounts: readonly RelayerSigner[]; problems: readonly string[] } {
  const accounts: RelayerSigner[] = [];
  const problems: string[] = [];
  for (const [index, each] of options.entries()) {
    const place = `retiringRelayers[${index}]`;
    const read = readRelayer(each);
    if (!read.ok) {
      problems.push(...read.problems.map((problem) => problem.replace(/^relayer/, place)));
      continue;
    }
    for (const account of read.accounts) {
      const isSame = ({ address }: RelayerSigner) => isSameAddress(address, account.address);
      if (relayers.some(isSame)) {
        problems.push(`${place}: ${account.address} is in relayer, too: name it in one of the two`);
      } else if (accounts.some(isSame)) {
        problems.push(`${place}: ${account.address} is named twice`);
      } else {
        accounts.push(account);
      }
    }
  }
  return { accounts, problems };
}

function readSigners(signers: readonly (HashSigner | LocalAccount)[]): ReadRelayer {
  const problems = signers.flatMap((signer) => findSignerProblem(signer) ?? []);
  if (problems.length > 0) return { ok: false, problems };
  const addresses = new Set(signers.map(({ address }) => address.toLowerCase()));
  if (addresses.size < signers.length) return fail("relayer names an address twice");
  const [first, ...others] = signers.map(toRelayerSigner);
  if (first !== undefined && signers.length <= maxAddresses) {
    return { ok: true, accounts: [first, ...others] };
  }
  return fail(`relayer must be one signer, or a list of 1 to ${maxAddresses}`);
}

function findSignerProblem(signer: {
  address?: unknown;
  sign?: unknown;
  signTransaction?: unknown;
}): string | undefined {
  const { address, sign, signTransaction } = signer;
  if (typeof address !== "string" || !isWellFormedAddress(address)) {
    return "relayer.address must be the address of its key";
  }
  const signs = typeof sign === "function" || typeof signTransaction === "function";
  return signs ? undefined : `relayer ${address} has neither sign nor signTransaction`;
}

/** The key of viem's own accounts is in this process: it can be neither slow nor another one. */
function toRelayerSigner(signer: HashSigner | LocalAccount): RelayerSigner {
  if (!("type" in signer)) return createRemoteSigner(signer);
  const { address, source, sign } = signer;
  const isHere = source === "privateKey" || source === "hd";
  return isHere && sign ? createLocalSigner({ address, sign }) : createRemoteSigner(signer);
}

function readSeedPhrase(options: {
  seedPhrase: string | undefined;
  accountIndex?: number | undefined;
  addressCount?: number | undefined;
}): ReadRelayer {
  const { seedPhrase, accountIndex = 0, addressCount = 1 } = options;
  const phrase = seedPhrase?.normalize("NFKD").trim().split(/\s+/).join(" ").toLowerCase();
  const problems: string[] = [];
  if (phrase === undefined || phrase === "") problems.push("relayer.seedPhrase is not set");
  else {
    const problem = findSeedPhraseProblem(phrase);
    if (problem !== undefined) problems.push(`relayer.seedPhrase ${problem}`);
  }
  if (!isIntegerBetween(accountIndex, 0, maxIndex)) {
    problems.push("relayer.accountIndex must be a whole number, 0 for the first account");
  }
  if (!isIntegerBetween(addressCount, 1, maxAddresses)) {
    problems.push(`relayer.addressCount must be a whole number from 1 to ${maxAddresses}`);
  }
  if (problems.length > 0 || phrase === undefined) return { ok: false, problems };
  const derive = (addressIndex: number) =>
    createLocalSigner(mnemonicToAccount(phrase, { addressIndex }));
  const others = Array.from({ length: addressCount - 1 }, (_, i) => derive(accountIndex + 1 + i));
  return { ok: true, accounts: [derive(accountIndex), ...others] };
}

function readPrivateKey(text: string | undefined): ReadRelayer {
  if (text === undefined || text.trim() === "") return fail("relayer.privateKey is not set");
  const digits = privateKeyForm.exec(text.trim())?.[1];
  if (digits === undefined) {
    return fail("relayer.privateKey must be 32 bytes in hex: 64 digits, with or without 0x");
  }
  const key: Hex = `0x${digits}`;
  try {
    return { ok: true, accounts: [createLocalSigner(privateKeyToAccount(key))] };
  } catch {
    // The cause would repeat the key.
    return fail("relayer.privateKey is outside the curve: it is zero, or too large");
  }
}

function fail(problem: string): ReadRelayer {
  return { ok: false, problems: [problem] };
}

function isIntegerBetween(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most;
}
