import { type Answer, isDelivered } from "./ask-seller.ts";
import { type Finding, failed, notChecked, passed, warning } from "./check.ts";
import { SellerError } from "./seller-error.ts";

/** Judges the answers to one payment that was sent several times: one of them may be a success. */
export function judgeDeliveries(results: readonly PromiseSettledResult<Answer>[]): Finding {
  const answers: Answer[] = [];
  let broken = 0;
  for (const result of results) {
    if (result.status === "fulfilled") answers.push(result.value);
    else if (result.reason instanceof SellerError) broken += 1;
    else throw result.reason;
  }
  const served = answers.filter(isDelivered).length;
  const refused = countStatuses(answers.filter((answer) => !isDelivered(answer)));
  const lost = broken === 0 ? "" : `, ${broken} without an answer`;
  const found = `${results.length} requests, ${served} served (others: ${refused}${lost})`;
  if (served > 1) return failed(found);
  if (answers.some(({ status }) => status === 429)) {
    return notChecked(`${found}: the seller limits the rate`);
  }
  return served === 1 ? passed(found) : warning(found);
}

function countStatuses(answers: readonly Answer[]): string {
  const counts = new Map<number, number>();
  for (const { status } of answers) counts.set(status, (counts.get(status) ?? 0) + 1);
  const parts = [...counts]
    .sort(([a], [b]) => a - b)
    .map(([status, count]) => `${count}× ${status}`);
  return parts.length === 0 ? "none" : parts.join(", ");
}
