import { expect, it, onTestFinished } from "vitest";
import { listPaymentsOperation } from "../reads/list-payments-operation.ts";
import { listRefundsOperation } from "../refunds/refund-operations.ts";
import { stopsOperation } from "../stops/stops-operation.ts";
import { copyMigratedLedger } from "../testing/migrated-ledger.ts";
import { engines } from "../testing/settling-devnet.ts";
import { operatorAt, operatorWithin } from "./operator.ts";
import { openTestLedger } from "./testing/open-test-ledger.ts";

const change = {
  operation: "set",
  target: { kind: "route", name: "GET /weather" },
  reason: "no forecast",
} as const;

it.each(engines)(
  "runs the same operations within a process and from outside, on %s",
  async (engine) => {
    const { url, drop } = await copyMigratedLedger(engine);
    onTestFinished(drop);
    const ledger = await openTestLedger(url);
    const within = operatorWithin((work) =>
      work({ context: { ledger, seller: undefined }, read: (read) => read(ledger) }),
    );
    expect(await within.run(stopsOperation, change)).toMatchObject({ stops: [change.target] });
    const page = { refunds: [], nextCursor: undefined };
    expect(await within.run(listRefundsOperation, {})).toEqual(page);
    expect(await operatorAt(url).run(listRefundsOperation, {})).toEqual(page);
    for (const operator of [within, operatorAt(url)]) {
      await expect(operator.run(listRefundsOperation, { limit: 0 })).rejects.toMatchObject({
        name: "OperationRefusedError",
        code: "malformed",
      });
    }
  },
);

it.each(engines)("refuses a text that no ledger can hold, on %s", async (engine) => {
  const { url, drop } = await copyMigratedLedger(engine);
  onTestFinished(drop);
  await openTestLedger(url);
  const operator = operatorAt(url);
  const malformed = {
    name: "OperationRefusedError",
    code: "malformed",
    message: expect.stringContaining("has a NUL character"),
  };
  for (const text of ["\0", "GET /a\0b"]) {
    const target = { kind: "route", name: text } as const;
    await expect(operator.run(listPaymentsOperation, { search: text })).rejects.toMatchObject(
      malformed,
    );
    await expect(operator.run(stopsOperation, { ...change, target })).rejects.toMatchObject(
      malformed,
    );
  }
  expect(await operator.run(listPaymentsOperation, { search: "\\u0000" })).toMatchObject({
    payments: [],
  });
});
