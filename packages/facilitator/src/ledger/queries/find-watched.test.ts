import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { network, queue } from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import { recordOutcomes } from "../payments/record-outcomes.ts";
import { findFailed } from "./find-watched.ts";

describe.each(engines)("watched payments on %s", (engine) => {
  const { join, wait } = ledgerForEachTest(engine);

  it("are read page by page, each once, even with equal timestamps", async () => {
    const ledger = await join("one");
    const ids: string[] = [];
    for (let index = 0; index < 6; index += 1) {
      if (index % 3 === 0) wait(1);
      ids.push(await queue(ledger));
    }
    const reason = "invalid_exact_evm_transaction_failed";
    await recordOutcomes(ledger, [{ failed: [{ ids, reason }] }]);
    const found: string[] = [];
    let afterId: string | undefined;
    do {
      const page = await findFailed(ledger, { network, limit: 2, afterId });
      afterId = page.at(-1)?.payment.id;
      found.push(...page.map(({ payment }) => payment.id));
    } while (afterId !== undefined);
    expect(found).toEqual([...ids].sort());
  });
});
