import type { WireCheck } from "../check.ts";
import { judgeDeliveries } from "../judge-deliveries.ts";

const copies = 10;

/** Whether a payment that comes ten times at once is served once. */
export const concurrent: WireCheck = {
  name: "concurrent",
  scope: "wire",
  payments: 1,
  needsPayer: true,
  async run(probe, wire) {
    const payment = await probe.payer.pay(await probe.draw(wire), probe.target.path);
    const sent = Array.from({ length: copies }, () => probe.send(payment));
    return judgeDeliveries(await Promise.allSettled(sent));
  },
};
