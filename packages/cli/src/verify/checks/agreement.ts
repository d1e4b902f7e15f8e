import { failed, notChecked, passed, type RouteCheck } from "../check.ts";
import { offeredWires } from "../offers/read-offers.ts";

/** Whether a buyer pays the same, whatever protocol it reads. */
export const agreement: RouteCheck = {
  name: "agreement",
  scope: "route",
  payments: 0,
  needsPayer: false,
  async run({ unpaid: { offers } }) {
    const wires = offeredWires(offers).filter((wire) => offers[wire].ways.length > 0);
    if (wires.length < 2) return notChecked("the offer speaks one protocol alone");
    const amounts = new Map<string, Set<string>>();
    for (const { requirements } of wires.flatMap((wire) => offers[wire].ways)) {
      const { network, asset, payTo, amount } = requirements;
      const place = `${network} ${asset}`.toLowerCase();
      const terms = `${payTo} ${amount}`.toLowerCase();
      amounts.set(place, (amounts.get(place) ?? new Set()).add(terms));
    }
    const isSame = [...amounts.values()].every((terms) => terms.size === 1);
    return isSame
      ? passed(`the same price and recipient by ${wires.join(", ")}`)
      : failed("price or recipient differ between the protocols");
  },
};
