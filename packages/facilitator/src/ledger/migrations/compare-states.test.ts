import { sql } from "kysely";
import { expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";

const shared = ledgerForEachTest("sqlite");

// A trigger would fill the table of a list anew for each row, a statement fills it once.
it("makes no table of a list for each payment whose state changes", async () => {
  const explained = await shared.read(
    sql`explain update payments set state = 'queued' where id = 'one'`,
  );
  const opcodes = explained.map((row) => Object(row));
  // The programs of triggers follow that of the statement, and each begins at 0.
  const start = opcodes.findIndex(({ addr }, index) => index > 0 && addr === 0);
  expect(start).toBeGreaterThan(0);
  const ofTriggers = opcodes.slice(start).map(({ opcode }) => opcode);
  expect(ofTriggers).not.toContain("OpenEphemeral");
});
