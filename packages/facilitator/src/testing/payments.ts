import {
  type Address,
  type Authorization,
  formatAuthorization,
  type Hex,
  type Network,
  type PaymentPayload,
  type PaymentRequirements,
  type TokenDomain,
  transferTypedData,
} from "@coinslot/protocol";
import { keccak256, type LocalAccount, stringToHex } from "viem";

/** Changes of a test payment against a valid one. */
export interface TestPayment {
  network: Network;
  asset: Address;
  /** The signing account. */
  signer: LocalAccount;
  payTo: Address;
  /** The required amount. */
  amount?: bigint;
  x402Version?: 1 | 2;
  /** Members of the authorization; `from` is the signer unless given. */
  authorization?: Partial<Authorization>;
  /** Under which the buyer signs, and which the seller names. */
  domain?: TokenDomain;
  /** Under which the buyer signs instead. */
  signedDomain?: TokenDomain;
  signedNetwork?: Network;
  signedAsset?: Address;
  requirements?: Partial<PaymentRequirements>;
  /** Changes the signature after it was made. */
  changeSignature?: (signature: Hex) => Hex;
}

export interface SignedTestPayment {
  paymentPayload: PaymentPayload;
  paymentRequirements: PaymentRequirements;
  authorization: Authorization;
  signature: Hex;
}

let lastNonce = 0;

/** Signs a valid payment of USDT0, with the changes in `test`. */
export async function signPayment(test: TestPayment): Promise<SignedTestPayment> {
  const { network, asset, signer, payTo, amount = 1_000n, x402Version = 2 } = test;
  const domain = test.domain ?? { name: "USDT0", version: "1" };
  lastNonce += 1;
  const authorization: Authorization = {
    from: signer.address,
    to: payTo,
    value: amount,
    validAfter: 0n,
    validBefore: BigInt(Math.floor(Date.now() / 1000) + 300),
    nonce: keccak256(stringToHex(`nonce ${process.pid} ${lastNonce}`)),
    ...test.authorization,
  };
  const paymentRequirements: PaymentRequirements = {
    scheme: "exact",
    network,
    amount: amount.toString(),
    asset,
    payTo,
    maxTimeoutSeconds: 300,
    extra: { ...domain },
    ...test.requirements,
  };
  const typedData = transferTypedData({
    authorization,
    network: test.signedNetwork ?? network,
    asset: test.signedAsset ?? asset,
    domain: test.signedDomain ?? domain,
  });
  const signed = await signer.signTypedData(typedData);
  const signature = test.changeSignature?.(signed) ?? signed;
  const payload = { signature, authorization: formatAuthorization(authorization) };
  const paymentPayload: PaymentPayload =
    x402Version === 1
      ? { x402Version, scheme: "exact", network: paymentRequirements.network, payload }
      : { x402Version, payload, accepted: paymentRequirements };
  return { paymentPayload, paymentRequirements, authorization, signature };
}
