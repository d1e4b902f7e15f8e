import {
  type ChannelConfig,
  channelIdOf,
  decodePaymentRequired,
  type Hex,
  headerName,
  type PaymentRequirements,
  plasma,
  plasmaUsdt0,
  toLowerHex,
  voucherTypedData,
} from "@coinslot/protocol";
import { zeroHash } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import type { SellerProcess } from "./seller.ts";

const price = 1_000n;

/** Offer of every scenario with channels, before the seller adds its own members. */
export function channelRequirements(): PaymentRequirements {
  const { address: asset, name, version } = plasmaUsdt0;
  return {
    scheme: "batch-settlement",
    network: plasma,
    amount: `${price}`,
    asset,
    payTo: `0x${"be".repeat(20)}`,
    maxTimeoutSeconds: 300,
    extra: { name, version },
  };
}

/** The one offer of a seller, as a buyer reads it. */
export async function offerOf({ port }: SellerProcess): Promise<PaymentRequirements | undefined> {
  const response = await fetch(`http://127.0.0.1:${port}/weather`);
  const header = response.headers.get(headerName.paymentRequired);
  if (header === null) throw new Error(`An unpaid request got status ${response.status}`);
  const [offered] = decodePaymentRequired(header).accepts;
  return offered?.requirements;
}

/** A buyer with one channel at each seller. */
export function createChannelBuyer({ network, asset, payTo }: PaymentRequirements) {
  const account = privateKeyToAccount(generatePrivateKey());
  const signer = toLowerHex(account.address);
  const receiver = toLowerHex(payTo);
  const channelConfig: ChannelConfig = {
    payer: signer,
    payerAuthorizer: signer,
    receiver,
    receiverAuthorizer: receiver,
    token: toLowerHex(asset),
    withdrawDelay: 86_400,
    salt: zeroHash,
  };
  const channelId = channelIdOf(channelConfig, { network });
  const signed: Hex[] = [];
  return {
    /** The headers of its first requests, in their order. Each voucher is signed once. */
    async sign(accepted: PaymentRequirements | undefined, count: number): Promise<string[]> {
      const headers: string[] = [];
      for (let number = 1; number <= count; number += 1) {
        const maxClaimableAmount = BigInt(number) * price;
        const data = voucherTypedData({ channelId, maxClaimableAmount }, { network });
        const signature = signed[number] ?? (await account.signTypedData(data));
        signed[number] = signature;
        const voucher = { channelId, maxClaimableAmount: `${maxClaimableAmount}`, signature };
        const payload = { type: "voucher", channelConfig, voucher };
        const payment = { x402Version: 2, accepted, payload };
        headers.push(Buffer.from(JSON.stringify(payment)).toString("base64"));
      }
      return headers;
    },
  };
}
