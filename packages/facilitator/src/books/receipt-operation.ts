import * as z from "zod";
import { defineOperation } from "../operators/operation.ts";
import { OperationRefusedError } from "../operators/operation-refused-error.ts";
import { readSale, receiptOf } from "./receipt.ts";
import { receiptPage } from "./receipt-page.ts";

/** The receipt of a payment, as a page to print. */
export const receiptOperation = defineOperation({
  name: "payments.receipt",
  access: "read",
  argument: z.strictObject({ id: z.string().min(1).max(100) }),
  /** HTML, without scripts. */
  result: z.object({ page: z.string() }),
  async run(reads, { id }) {
    const sale = await readSale(reads, id);
    if (sale === undefined) {
      throw new OperationRefusedError("unknown_payment", "The ledger has no payment with this id");
    }
    const receipt = receiptOf(sale.payment, sale.sold);
    if (receipt !== undefined) return { page: receiptPage(receipt) };
    const message = `The payment is ${sale.payment.state}: only a confirmed one has a receipt`;
    throw new OperationRefusedError("not_settled", message);
  },
});
