import {
  type Address,
  type Authorization,
  type Hex,
  isSameAddress,
  toLowerHex,
  transferTypedData,
} from "@coinslot/protocol";
import { hashTypedData } from "viem";
import { refundNonce } from "../ledger/refunds/refund-nonce.ts";
import type { SignedRefunds, UnsignedRefunds } from "./refund-file.ts";

/** The transfer of a refund in a file, with its EIP-712 digest. */
export function transferOf(
  float: Address,
  refund: UnsignedRefunds["refunds"][number],
): { authorization: Authorization; digest: Hex } {
  const { network, domain, payment, n } = refund;
  const asset = toLowerHex(refund.asset);
  const payer = toLowerHex(payment.payer);
  const authority = payment.authority && toLowerHex(payment.authority);
  const id = { network, asset, authority, payer, nonce: toLowerHex(payment.nonce) };
  const authorization = {
    from: toLowerHex(float),
    to: payer,
    value: BigInt(refund.amount),
    validAfter: 0n,
    validBefore: BigInt(refund.validBefore),
    nonce: refundNonce(id, n),
  };
  const digest = hashTypedData(transferTypedData({ authorization, network, asset, domain }));
  return { authorization, digest };
}

/**
 * Signs exported refunds, on a machine without ledger and chain. The nonces are derived here, and
 * not read from the file.
 *
 * @param account a viem account, or any signer of hashes
 * @throws TypeError where the file asks for another account
 */
export async function signRefunds(
  unsigned: UnsignedRefunds,
  account: { address: Address; sign(options: { hash: Hex }): Promise<Hex> },
): Promise<SignedRefunds> {
  const { float } = unsigned;
  if (!isSameAddress(account.address, float)) {
    throw new TypeError(`The refunds are to be signed by ${float}, not by ${account.address}`);
  }
  const refunds: SignedRefunds["refunds"] = [];
  for (const refund of unsigned.refunds) {
    const { digest } = transferOf(float, refund);
    refunds.push({ ...refund, signature: await account.sign({ hash: digest }) });
  }
  return { ...unsigned, refunds };
}
