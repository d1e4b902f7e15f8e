import {
  type Address,
  bytesToHex,
  type Hex,
  parseEventLogs,
  parseSignature,
  type TransactionReceipt,
} from "viem";
import { testUsdt0 } from "../contracts/test-usdt0.generated.ts";
import type { DevAccount } from "./accounts.ts";
import type { Devnet } from "./devnet.ts";

export type Authorization = {
  from: Address;
  to: Address;
  value: bigint;
  validAfter: bigint;
  validBefore: bigint;
  nonce: Hex;
};

/** The two forms in which the token takes a signature. */
export const signatureForms = ["v, r, s", "bytes"] as const;
export type SignatureForm = (typeof signatureForms)[number];

const authorizationFields = [
  { name: "from", type: "address" },
  { name: "to", type: "address" },
  { name: "value", type: "uint256" },
  { name: "validAfter", type: "uint256" },
  { name: "validBefore", type: "uint256" },
  { name: "nonce", type: "bytes32" },
] as const;

const types = {
  TransferWithAuthorization: authorizationFields,
  ReceiveWithAuthorization: authorizationFields,
  CancelAuthorization: [
    { name: "authorizer", type: "address" },
    { name: "nonce", type: "bytes32" },
  ],
  Permit: [
    { name: "owner", type: "address" },
    { name: "spender", type: "address" },
    { name: "value", type: "uint256" },
    { name: "nonce", type: "uint256" },
    { name: "deadline", type: "uint256" },
  ],
} as const;

export type TokenFixture = ReturnType<typeof createTokenFixture>;

interface FixtureOptions {
  devnet: Devnet;
  token: Address;
}

/**
 * Signs for a token of the devnet like a payer, and sends like a relayer, for this package's tests.
 */
export function createTokenFixture(options: FixtureOptions) {
  return { ...createTokenSigner(options), ...createTokenSender(options) };
}

function createTokenSigner({ devnet: { chainId, accounts }, token }: FixtureOptions) {
  const domain = { name: "USDT0", version: "1", chainId, verifyingContract: token };

  /** An authorization of the buyer to the seller with a fresh nonce, by default valid for ever. */
  function authorize(parts: Partial<Authorization> & { value: bigint }): Authorization {
    return {
      from: accounts.buyer.address,
      to: accounts.seller.address,
      validAfter: 0n,
      validBefore: 2n ** 256n - 1n,
      nonce: bytesToHex(crypto.getRandomValues(new Uint8Array(32))),
      ...parts,
    };
  }

  function sign(
    message: Authorization,
    signer: DevAccount = accounts.buyer,
    primaryType:
      | "TransferWithAuthorization"
      | "ReceiveWithAuthorization" = "TransferWithAuthorization",
  ): Promise<Hex> {
    return signer.signTypedData({ domain, types, primaryType, message });
  }

  function signCancellation({ from, nonce }: Authorization, signer: DevAccount = accounts.buyer) {
    const message = { authorizer: from, nonce };
    return signer.signTypedData({ domain, types, primaryType: "CancelAuthorization", message });
  }

  function signPermit(
    message: { owner: Address; spender: Address; value: bigint; nonce: bigint; deadline: bigint },
    signer: DevAccount = accounts.buyer,
  ) {
    return signer.signTypedData({ domain, types, primaryType: "Permit", message });
  }

  return { domain, authorize, sign, signCancellation, signPermit };
}

function createTokenSender({ devnet: { client, accounts }, token }: FixtureOptions) {
  const contract = { address: token, abi: testUsdt0.abi } as const;

  /**
   * Sends `transferWithAuthorization`. Rejects with the revert reason, unless `gas` is given: it
   * then sends without a simulation.
   */
  async function transfer(
    authorization: Authorization,
    signature: Hex,
    { form = "bytes", gas }: { form?: SignatureForm; gas?: bigint } = {},
  ): Promise<TransactionReceipt> {
    const hash = await client.writeContract({
      ...contract,
      account: accounts.relayer,
      functionName: "transferWithAuthorization",
      args: withSignature(valuesOf(authorization), signature, form),
      ...(gas && { gas }),
    });
    return client.waitForTransactionReceipt({ hash });
  }

  async function receive(
    authorization: Authorization,
    signature: Hex,
    { form = "bytes", account }: { form?: SignatureForm; account: DevAccount },
  ): Promise<TransactionReceipt> {
    const hash = await client.writeContract({
      ...contract,
      account,
      functionName: "receiveWithAuthorization",
      args: withSignature(valuesOf(authorization), signature, form),
    });
    return client.waitForTransactionReceipt({ hash });
  }

  async function cancel(
    { from, nonce }: Authorization,
    signature: Hex,
    form: SignatureForm = "bytes",
  ): Promise<TransactionReceipt> {
    const hash = await client.writeContract({
      ...contract,
      account: accounts.relayer,
      functionName: "cancelAuthorization",
      args: withSignature([from, nonce], signature, form),
    });
    return client.waitForTransactionReceipt({ hash });
  }

  function balanceOf(account: Address): Promise<bigint> {
    return client.readContract({ ...contract, functionName: "balanceOf", args: [account] });
  }

  return { contract, transfer, receive, cancel, balanceOf };
}

function valuesOf({ from, to, value, validAfter, validBefore, nonce }: Authorization) {
  return [from, to, value, validAfter, validBefore, nonce] as const;
}

/** Arguments of the token's functions: the signature comes last, in either form. */
function withSignature<const Values extends readonly unknown[]>(
  values: Values,
  signature: Hex,
  form: SignatureForm,
): readonly [...Values, Hex] | readonly [...Values, number, Hex, Hex] {
  return form === "bytes" ? [...values, signature] : [...values, ...split(signature)];
}

/** Names and arguments of the token's events, in the order of the log. */
export function eventsOf(receipt: TransactionReceipt) {
  return parseEventLogs({ abi: testUsdt0.abi, logs: receipt.logs }).map(({ eventName, args }) => ({
    eventName,
    args,
  }));
}

export function split(signature: Hex): readonly [v: number, r: Hex, s: Hex] {
  const { r, s, yParity } = parseSignature(signature);
  return [yParity + 27, r, s];
}
