import { randomBytes } from "node:crypto";
import type { Devnet } from "@coinslot/devnet";
import {
  type Authorization,
  type ExactEvmPayload,
  formatAuthorization,
  type PaymentPayloadV2,
  type PaymentRequirements,
  toLowerHex,
  transferTypedData,
} from "@coinslot/protocol";
import { toHex } from "viem";

/** Price of one request in every scenario, in the token's smallest unit. */
export const price = 1000n;

/** The requirements of every scenario: one price of the devnet's token, paid to the seller. */
export function requirementsOf(devnet: Devnet): PaymentRequirements {
  return {
    scheme: "exact",
    network: devnet.network,
    amount: price.toString(),
    asset: devnet.token,
    payTo: devnet.accounts.seller.address,
    maxTimeoutSeconds: 3600,
    extra: { name: "USDT0", version: "1", decimals: 6 },
  };
}

/** Gives every paying account of the devnet enough for any scenario. */
export async function fundPayers(devnet: Devnet): Promise<void> {
  for (const { address } of devnet.accounts.others) {
    await devnet.mint({ to: address, amount: 1_000_000_000n });
  }
}

/** Signs this many payments beforehand, spread over the devnet's paying accounts. */
export async function signPayments(devnet: Devnet, count: number): Promise<PaymentPayloadV2[]> {
  const payments: PaymentPayloadV2[] = [];
  for (let index = 0; index < count; index += 1) payments.push(await signPayment(devnet, index));
  return payments;
}

/** Signs a payment of one of the devnet's paying accounts: they take turns by `index`. */
export async function signPayment(devnet: Devnet, index: number): Promise<PaymentPayloadV2> {
  const payload = await signAuthorization(devnet, index, {
    validBefore: BigInt(Math.floor(Date.now() / 1000) + 3600),
    nonce: toHex(randomBytes(32)),
  });
  return { x402Version: 2, accepted: requirementsOf(devnet), payload };
}

/** Signs a transfer of the price to the seller, with the addresses in lower case. */
export async function signAuthorization(
  devnet: Devnet,
  index: number,
  fresh: Pick<Authorization, "validBefore" | "nonce">,
): Promise<ExactEvmPayload> {
  const payers = devnet.accounts.others;
  const payer = payers[index % payers.length];
  if (payer === undefined) throw new Error("The devnet has no accounts that pay.");
  const authorization: Authorization = {
    from: toLowerHex(payer.address),
    to: toLowerHex(devnet.accounts.seller.address),
    value: price,
    validAfter: 0n,
    ...fresh,
  };
  const signature = await payer.signTypedData(
    transferTypedData({
      authorization,
      network: devnet.network,
      asset: devnet.token,
      domain: { name: "USDT0", version: "1" },
    }),
  );
  return { signature, authorization: formatAuthorization(authorization) };
}
