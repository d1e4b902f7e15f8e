import { httpPost, systemClock } from "@coinslot/chain";
import { startDevnet } from "@coinslot/devnet";
import { UpdateQueryNode } from "kysely";
import { expect, it, onTestFinished } from "vitest";
import type { LedgerContext } from "../../ledger/ledger-context.ts";
import { listPayments } from "../../ledger/queries/list-payments.ts";
import { storeTransaction } from "../../ledger/transactions/store-transaction.ts";
import { silentLogger } from "../../logger.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { authorization, queue, takeLease, transaction } from "../../testing/ledger-payments.ts";
import { createPool } from "../../testing/verifying-devnet.ts";
import { createMetrics } from "../metrics.ts";
import { createOutcomeNotifier } from "../outcome-notifier.ts";
import { endOverdue } from "./end-overdue.ts";

const { join } = ledgerForEachTest("sqlite");

/** The ledger, and the number of updates in its transactions. */
function countUpdates(ledger: LedgerContext) {
  let updates = 0;
  const counted: LedgerContext = {
    ...ledger,
    write: (work, options) =>
      ledger.write(
        (tx) =>
          work(
            tx.withPlugin({
              transformQuery({ node }) {
                if (UpdateQueryNode.is(node)) updates += 1;
                return node;
              },
              transformResult: async ({ result }) => result,
            }),
          ),
        options,
      ),
  };
  return { counted, updates: () => updates };
}

it("ends any number of overdue payments with one update", async () => {
  const devnet = await startDevnet();
  onTestFinished(() => devnet.stop());
  const pool = createPool(devnet, httpPost);
  onTestFinished(() => pool.close());
  const { network, token: asset } = devnet;
  const ledger = await join("one");
  const ids: string[] = [];
  for (let count = 0; count < 5; count += 1) {
    const id = authorization({ network, asset });
    ids.push(await queue(ledger, { id, validBefore: 1_000n }));
  }
  const record = { ...transaction(0, ids), network };
  expect(await storeTransaction(ledger, await takeLease(ledger), record)).toBe("stored");

  const { counted, updates } = countUpdates(ledger);
  const parts = { clock: systemClock, logger: silentLogger, emit: () => undefined };
  const notifier = await createOutcomeNotifier({
    ...parts,
    ledger,
    metrics: createMetrics(),
    pollMs: 10_000,
  });
  onTestFinished(() => notifier.stop());
  await devnet.mine(1);
  await endOverdue({
    context: { ledger: counted, notifier, logger: silentLogger, now: Date.now },
    network: { network, rpc: pool, finalAfter: 0 },
    watch: { finalBlock: undefined },
    head: await devnet.client.getBlockNumber(),
  });

  const { payments } = await listPayments(ledger, {});
  expect(payments.map(({ state }) => state)).toEqual(ids.map(() => "failed"));
  expect(updates()).toBe(1);
});
