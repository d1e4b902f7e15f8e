import { isDelivered } from "../ask-seller.ts";
import { failed, judgeRefusals, notChecked, type WireCheck } from "../check.ts";

/** Whether a served payment, which is public by now, is refused when it comes again. */
export const repeat: WireCheck = {
  name: "repeat",
  scope: "wire",
  payments: 0,
  needsPayer: true,
  usesPurchase: true,
  async run(probe, wire) {
    const { answer, payment } = await probe.purchase(wire);
    if (!isDelivered(answer)) return notChecked(`the payment was answered ${answer.status}`);
    const again = await probe.send(payment);
    const found = `the same payment again is answered ${again.status}`;
    return isDelivered(again) ? failed(found) : judgeRefusals(found, [again.status]);
  },
};
