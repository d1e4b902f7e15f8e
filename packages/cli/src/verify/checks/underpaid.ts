import { isDelivered } from "../ask-seller.ts";
import { failed, judgeRefusals, notChecked, type WireCheck } from "../check.ts";

/** Whether a payment of one unit less is refused, and not taken. */
export const underpaid: WireCheck = {
  name: "underpaid",
  scope: "wire",
  payments: 1,
  needsPayer: true,
  async run(probe, wire) {
    const way = await probe.draw(wire);
    if (BigInt(way.requirements.amount) < 2n) return notChecked("the price is one unit");
    const payment = await probe.payer.pay(way, probe.target.path, { lessBy: 1n });
    const answer = await probe.send(payment);
    if (isDelivered(answer))
      return failed(`a payment of one unit less is answered ${answer.status}`);
    if (await probe.chain.isUsed(payment)) {
      payment.isReported = true;
      return failed(`a payment of one unit less is answered ${answer.status}, and taken`);
    }
    return judgeRefusals(`a payment of one unit less is answered ${answer.status}`, [
      answer.status,
    ]);
  },
};
