import { headerOf, isDelivered } from "../ask-seller.ts";
import { failed, notChecked, passed, type WireCheck, warning } from "../check.ts";
import { receiptHeader } from "../probe.ts";
import { readTransaction } from "./receipt.ts";

/** Whether a handler that fails costs the buyer nothing. */
export const failingHandler: WireCheck = {
  name: "failing-handler",
  scope: "wire",
  payments: 1,
  needsPayer: true,
  needs: "failing",
  async run(probe, wire) {
    const { failingPath } = probe.target;
    if (failingPath === undefined) return notChecked("--failing names no route");
    const way = await probe.draw(wire, failingPath);
    const payment = await probe.payer.pay(way, failingPath);
    const answer = await probe.send(payment, failingPath);
    if (isDelivered(answer)) return notChecked(`--failing is answered ${answer.status}`);
    if (answer.status === 402) return notChecked("--failing refuses the payment: 402");
    if (await probe.chain.isUsed(payment)) {
      payment.isReported = true;
      const found = `charged, and answered ${answer.status}`;
      const isStated = way.requirements.extra?.paymentFlow === "upfront";
      return isStated ? warning(`${found}, as the offer states (upfront)`) : failed(found);
    }
    const header = headerOf(answer, receiptHeader[wire]);
    if (header !== undefined && readTransaction(wire, header) !== undefined) {
      return failed(`answered ${answer.status} with a receipt, and not charged`);
    }
    return passed(`answered ${answer.status}, and not charged`);
  },
};
