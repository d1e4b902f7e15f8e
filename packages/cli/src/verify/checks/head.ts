import { isSuccess } from "../ask-seller.ts";
import { failed, judgeRefusals, notChecked, type RouteCheck } from "../check.ts";

/** Whether HEAD runs a paid GET handler for nothing: frameworks route it there. */
export const head: RouteCheck = {
  name: "head",
  scope: "route",
  payments: 0,
  needsPayer: false,
  async run({ target, ask }) {
    if (target.request.method !== "GET") return notChecked("the route is not sold for GET");
    const answer = await ask({ method: "HEAD" });
    if (isSuccess(answer)) return failed(`HEAD is answered ${answer.status} without a payment`);
    return judgeRefusals(`HEAD is answered ${answer.status}`, [answer.status]);
  },
};
