import { DecodeError, decodePaymentReceipt, decodeReceipt } from "@coinslot/protocol";
import { headerOf, isDelivered } from "../ask-seller.ts";
import { failed, notChecked, passed, type WireCheck } from "../check.ts";
import { receiptHeader } from "../probe.ts";
import type { WireName } from "../way.ts";

/** Whether a receipt names a transaction that moved exactly this payment. */
export const receipt: WireCheck = {
  name: "receipt",
  scope: "wire",
  payments: 0,
  needsPayer: true,
  usesPurchase: true,
  async run(probe, wire) {
    const { answer, payment } = await probe.purchase(wire);
    if (!isDelivered(answer)) return notChecked(`the payment was answered ${answer.status}`);
    const header = headerOf(answer, receiptHeader[wire]);
    if (header === undefined) return failed(`there is no ${receiptHeader[wire]}`);
    const transaction = readTransaction(wire, header);
    if (transaction === undefined) return failed(`${receiptHeader[wire]} cannot be read`);
    const hasPaid = await probe.chain.hasPaid(payment, transaction);
    if (hasPaid) return passed("its transaction moved this payment");
    return failed(
      hasPaid === undefined
        ? "the chain knows no such transaction"
        : "its transaction did not move this payment",
    );
  },
};

/** The transaction of a receipt that claims success. */
export function readTransaction(wire: WireName, header: string): string | undefined {
  try {
    if (wire === "MPP") return decodePaymentReceipt(header).reference;
    const { success, transaction } = decodeReceipt(header);
    return success ? transaction : undefined;
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}
