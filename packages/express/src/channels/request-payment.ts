import type { ChannelAuthorizedPayment } from "../request-payment.ts";
import type { ChannelOrder } from "./channel-sale.ts";

type Facts = Omit<ChannelAuthorizedPayment, "paymentFlow" | "charge" | "waive">;

/** The facts of `request.payment`. Its payer is the signer: a channel can be opened in any name. */
export function paymentOf({ requirements, voucher, signer, price }: ChannelOrder): Facts {
  const { channelConfig } = voucher;
  return {
    scheme: "batch-settlement",
    payer: signer,
    amount: price.toString(),
    asset: channelConfig.token,
    network: requirements.network,
    channel: { id: voucher.voucher.channelId, payer: channelConfig.payer },
  };
}
