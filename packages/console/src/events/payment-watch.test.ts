import { type Operator, operations } from "@coinslot/facilitator";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createPaymentWatch } from "./payment-watch.ts";

const byName = new Map(operations.map((operation) => [operation.name, operation]));

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A ledger that changes between any two looks. */
function createBusyOperator(): Operator {
  let matched = 0;
  return {
    async run(operation) {
      matched += 1;
      const pages: Record<string, unknown> = {
        "payments.list": { matched, payments: [], nextCursor: null },
        "refunds.list": { refunds: [] },
      };
      return operation.result.parse(pages[operation.name]);
    },
  };
}

it("leaves a seller most of its time, whatever open pages read after each change", async () => {
  let changes = 0;
  const watch = createPaymentWatch({
    // A page reads for 24 ms after each change.
    meter: { operator: createBusyOperator(), spentMs: () => changes * 24 },
    operations: byName,
    onState: () => {
      changes += 1;
    },
    codeOf: String,
  });
  watch.start();
  await vi.advanceTimersByTimeAsync(30_000);
  watch.stop();
  // 24 ms are 0.4% of 6 s.
  expect(changes).toBeGreaterThanOrEqual(5);
  expect(changes).toBeLessThanOrEqual(6);
});
