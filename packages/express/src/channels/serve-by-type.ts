import type { ChannelPayload } from "@coinslot/protocol";
import type { ChannelOrder } from "./channel-sale.ts";
import { refundByPayload } from "./refund-by-payload.ts";
import { sellByDeposit } from "./sell-by-deposit.ts";
import { sellByVoucher } from "./sell-by-voucher.ts";

/** Serves a payment by a channel, by the type of its payload. Its voucher was checked. */
export async function serveByType(order: ChannelOrder, payload: ChannelPayload): Promise<void> {
  switch (payload.type) {
    case "voucher":
      return sellByVoucher(order);
    case "deposit":
      return sellByDeposit(order, payload.deposit);
    case "refund":
      return refundByPayload(order, payload.amount);
  }
}
