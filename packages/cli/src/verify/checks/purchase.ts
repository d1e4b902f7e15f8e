import { isDelivered } from "../ask-seller.ts";
import { failed, passed, type WireCheck } from "../check.ts";

/** Whether a payment is served. */
export const purchase: WireCheck = {
  name: "purchase",
  scope: "wire",
  payments: 0,
  needsPayer: true,
  usesPurchase: true,
  async run(probe, wire) {
    const { answer } = await probe.purchase(wire);
    const found = `a payment is answered ${answer.status}`;
    return isDelivered(answer) ? passed(found) : failed(found);
  },
};
