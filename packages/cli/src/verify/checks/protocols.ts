import { formatAuthorization } from "@coinslot/protocol";
import { type Answer, isDelivered } from "../ask-seller.ts";
import { notChecked, type RouteCheck } from "../check.ts";
import { judgeDeliveries } from "../judge-deliveries.ts";
import { leadingWire } from "../make-plan.ts";

/** Whether one authorization, shown by all protocols at once, is served once. */
export const protocols: RouteCheck = {
  name: "protocols",
  scope: "route",
  payments: 1,
  needsPayer: true,
  async run(probe) {
    const { wires } = probe.plan;
    if (wires.length < 2) return notChecked("one protocol alone can be paid");
    const first = leadingWire(wires);
    const payment = await probe.payer.pay(await probe.draw(first), probe.target.path);
    const authorization = formatAuthorization(payment.authorization);
    const paid = { authorization, signature: payment.signature };
    const others = await Promise.all(
      wires.filter((wire) => wire !== first).map((wire) => probe.draw(wire)),
    );
    const forms = [payment.headers, ...others.map((way) => way.present(paid))];
    const show = async (headers: (typeof forms)[number]) => {
      const answer = await probe.ask({ headers });
      if (isDelivered(answer)) payment.isServed = true;
      return answer;
    };
    const atOnce = await Promise.allSettled(forms.map(show));
    const afterwards: PromiseSettledResult<Answer>[] = [];
    for (const headers of forms) afterwards.push(...(await Promise.allSettled([show(headers)])));
    return judgeDeliveries([...atOnce, ...afterwards]);
  },
};
