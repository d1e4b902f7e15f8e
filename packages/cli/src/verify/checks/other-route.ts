import { isDelivered } from "../ask-seller.ts";
import { failed, judgeRefusals, notChecked, type WireCheck, warning } from "../check.ts";

/** Whether a served payment is refused on another route. */
export const otherRoute: WireCheck = {
  name: "other-route",
  scope: "wire",
  payments: 1,
  needsPayer: true,
  needs: "other",
  async run(probe, wire) {
    const { otherPath } = probe.target;
    if (otherPath === undefined) return notChecked("--other names no route");
    const there = (await probe.draw(wire, otherPath)).requirements;
    const way = await probe.draw(wire);
    if (there.amount !== way.requirements.amount || there.payTo !== way.requirements.payTo) {
      return notChecked("--other has another price or recipient");
    }
    const payment = await probe.payer.pay(way, probe.target.path);
    // A challenge is for one URL. It is tried elsewhere while it is still good.
    const early = wire === "MPP" ? await probe.send(payment, otherPath) : undefined;
    const here = await probe.send(payment);
    const replayed = await probe.send(payment, otherPath);
    const served = [early, here, replayed].filter((answer) => answer && isDelivered(answer)).length;
    if (served > 1) return failed(`one payment is served on ${served} requests of two routes`);
    if (early !== undefined && isDelivered(early)) {
      return warning("a credential for this URL buys the other route's answer");
    }
    if (!isDelivered(here)) return notChecked(`the payment was answered ${here.status}`);
    const found = `the served payment is answered ${replayed.status} there`;
    return judgeRefusals(found, [replayed.status]);
  },
};
