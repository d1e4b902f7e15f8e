import { type Address, encodeDeployData, getAddress, type Hex, zeroAddress } from "viem";
import { lyingWallet } from "../contracts/lying-wallet.generated.ts";
import { misbehavingToken } from "../contracts/misbehaving-token.generated.ts";
import { smartAccount } from "../contracts/smart-account.generated.ts";
import { testUsdt0 } from "../contracts/test-usdt0.generated.ts";
import { transferBatch } from "../contracts/transfer-batch.generated.ts";
import {
  type Behaviour,
  behaviours,
  type SmartAccountAnswer,
  smartAccountAnswers,
} from "./contract-modes.ts";
import type { Faucet } from "./faucet.ts";

export type TokenOptions = {
  /** EIP-712 domain name. Default "USDT0" */
  name?: string;
  /** EIP-712 domain version. Default "1" */
  version?: string;
  /** Default "USDT0" */
  symbol?: string;
  /** Default 6 */
  decimals?: number;
};

export type SmartAccountOptions = {
  /** Without one, each account that runs this code by EIP-7702 is its own owner. */
  owner?: Address;
  /** Default "honest" */
  answer?: SmartAccountAnswer;
};

/** Creation code of the stablecoin. */
export function tokenCreationCode(options: TokenOptions = {}): Hex {
  return encodeDeployData({ ...testUsdt0, args: tokenArguments(options) });
}

/** Deploys a well-behaved stablecoin; resolves to its address when mined. */
export function deployToken(send: Faucet, options: TokenOptions = {}): Promise<Address> {
  return deploy(send, tokenCreationCode(options));
}

/** Deploys a stablecoin with one fault; resolves to its address when mined. */
export function deployMisbehavingToken(
  send: Faucet,
  behaviour: Behaviour,
  options: TokenOptions = {},
): Promise<Address> {
  const args = [...tokenArguments(options), behaviours[behaviour]] as const;
  return deploy(send, encodeDeployData({ ...misbehavingToken, args }));
}

/** Deploys an EIP-1271 account; resolves to its address when mined. */
export function deploySmartAccount(
  send: Faucet,
  { owner = zeroAddress, answer = "honest" }: SmartAccountOptions = {},
): Promise<Address> {
  const args = [owner, smartAccountAnswers[answer]] as const;
  return deploy(send, encodeDeployData({ ...smartAccount, args }));
}

/**
 * Deploys an account that accepts any signature, until it is set to lie; resolves to its address
 * when mined.
 */
export function deployLyingWallet(send: Faucet): Promise<Address> {
  return deploy(send, lyingWallet.bytecode);
}

/**
 * Deploys a contract that emits many Transfers in one transaction; resolves to its address when
 * mined.
 */
export function deployTransferBatch(send: Faucet): Promise<Address> {
  return deploy(send, transferBatch.bytecode);
}

function tokenArguments(options: TokenOptions) {
  const { name = "USDT0", version = "1", symbol = "USDT0", decimals = 6 } = options;
  return [name, version, symbol, decimals] as const;
}

async function deploy(send: Faucet, creationCode: Hex): Promise<Address> {
  const { contractAddress, transactionHash } = await send({ data: creationCode });
  if (!contractAddress) throw new Error(`Transaction ${transactionHash} deployed no contract.`);
  return getAddress(contractAddress);
}
