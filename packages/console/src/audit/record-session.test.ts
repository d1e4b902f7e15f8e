import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AuditEntry, listAuditOperation, operatorAt } from "@coinslot/facilitator";
import { expect, it, onTestFinished } from "vitest";
import { openLedger } from "../../../facilitator/src/ledger/open-ledger.ts";
import { signIn, startTestConsole } from "../testing/signed-in.ts";
import { ofPage, send } from "../testing/visit-console.ts";

const [key, readerKey, wrongKey] = ["k".repeat(32), "r".repeat(32), "w".repeat(32)];

/** A console over a ledger of its own, with a clock. */
async function open() {
  const folder = mkdtempSync(join(tmpdir(), "coinslot-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const place = `sqlite:${join(folder, "ledger.db")}`;
  const operator = operatorAt(place);
  // It brings the tables, and leaves: the console writes by itself.
  await (await openLedger({ url: place, processId: "seller" })).close();
  const clock = { now: 1_000_000 };
  const { url } = await startTestConsole(operator, { key, readerKey, now: () => clock.now });
  const entries = async () => (await operator.run(listAuditOperation, { limit: 1_000 })).entries;
  return { url, clock, entries };
}

const tryKey = (url: string, guess: string) =>
  send(url, {
    ...{ method: "POST", path: "/api/session", headers: ofPage(url), body: { key: guess } },
  });
const omittedOf = ({ argument }: AuditEntry) =>
  typeof argument === "object" && argument !== null && "omitted" in argument
    ? argument.omitted
    : undefined;

it("bounds the entries that readers and strangers cause, and counts what it leaves out", async () => {
  const { url, clock, entries } = await open();
  for (let count = 0; count < 100; count += 1) {
    const reader = await signIn(url, { key: readerKey });
    await reader.send({ method: "DELETE", path: "/api/session" });
    await tryKey(url, wrongKey);
    clock.now += 1_000;
  }
  // Beside them, nothing of an operator is left out.
  for (let count = 0; count < 40; count += 1) {
    const { send: sendAs } = await signIn(url, { key });
    await sendAs({ method: "DELETE", path: "/api/session" });
  }
  const ofOperators = (list: readonly AuditEntry[]) => list.slice(0, 80);
  await expect.poll(async () => (await entries()).length).toBeGreaterThanOrEqual(140);
  const found = await entries();
  expect(found).toHaveLength(80 + 30 + 30);
  expect(ofOperators(found).every(({ outcome }) => outcome === "done")).toBe(true);
  expect(found.filter(({ outcome }) => outcome === "refused")).toHaveLength(30);

  clock.now += 60 * 60_000;
  await tryKey(url, wrongKey);
  await signIn(url, { key: readerKey });
  await expect.poll(async () => (await entries()).length).toBe(142);
  expect((await entries()).slice(0, 2).map(omittedOf).sort()).toEqual([170, 70]);
});
