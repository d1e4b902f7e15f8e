import { failed, notChecked, passed, type RouteCheck } from "../check.ts";

/** Whether the seller has taken the served payments, and no other. Runs last. */
export const charges: RouteCheck = {
  name: "charges",
  scope: "route",
  payments: 0,
  needsPayer: true,
  async run({ payer, chain }) {
    const { payments } = payer;
    if (payments.length === 0) return notChecked("no payment was made");
    let free = 0;
    let unserved = 0;
    for (const payment of payments) {
      const { isServed, isReported } = payment;
      const isUsed = await (isServed ? chain.untilUsed(payment) : chain.isUsed(payment));
      if (isServed && !isUsed) free += 1;
      if (!isServed && isUsed && !isReported) unserved += 1;
    }
    const served = payments.filter(({ isServed }) => isServed).length;
    const problems = [
      ...(free > 0 ? [`${free} served and not charged`] : []),
      ...(unserved > 0 ? [`${unserved} charged and not served`] : []),
    ];
    const found = `${payments.length} payments, ${served} served`;
    if (problems.length > 0) return failed(`${found}: ${problems.join(", ")}`);
    return passed(`${found} and charged, the others not`);
  },
};
