import { type Answer, headerOf, isDelivered } from "../ask-seller.ts";
import { failed, notChecked, passed, type WireCheck, warning } from "../check.ts";

/** Whether a shared cache would hand a paid answer to others, or an old offer to buyers. */
export const caching: WireCheck = {
  name: "caching",
  scope: "wire",
  payments: 0,
  needsPayer: true,
  usesPurchase: true,
  async run(probe, wire) {
    const { answer } = await probe.purchase(wire);
    if (!isDelivered(answer)) return notChecked(`the payment was answered ${answer.status}`);
    const paid = directivesOf(answer);
    const unpaid = directivesOf(probe.unpaid.answer);
    if (isShared(paid)) return failed("a paid answer asks shared caches to store it");
    if (isShared(unpaid)) return failed("the offer asks shared caches to store it");
    const isPrivate = ["private", "no-store"].some((name) => paid.has(name));
    return isPrivate
      ? passed("paid answers are private")
      : warning("a paid answer has neither private nor no-store: a shared cache may store it");
  },
};

function directivesOf(answer: Answer): Map<string, string> {
  const parts = (headerOf(answer, "cache-control") ?? "").toLowerCase().split(",");
  return new Map(
    parts.map((part) => {
      const [name = "", value = ""] = part.trim().split("=");
      return [name, value];
    }),
  );
}

function isShared(directives: Map<string, string>): boolean {
  if (directives.has("private") || directives.has("no-store")) return false;
  const age = directives.get("s-maxage") ?? directives.get("max-age") ?? "0";
  return directives.has("public") || !/^"?0+"?$/.test(age);
}
