import { readFile } from "node:fs/promises";
import { openBrowser } from "@coinslot/pages/testing";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import type { LedgerContext } from "../../facilitator/src/ledger/ledger-context.ts";
import { sendHeartbeat } from "../../facilitator/src/ledger/maintenance/processes.ts";
import { openTestLedger } from "../../facilitator/src/operators/testing/open-test-ledger.ts";
import { sellForTest } from "../../facilitator/src/testing/sold-payments.ts";
import { createSqliteUrl } from "../../storage/src/testing/engines.ts";
import { openFaultyLedger } from "./testing/faulty-ledger.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser?.close());

const unknownToken = `0x${"05".repeat(20)}` as const;

/** A signed-in console beside a ledger. */
async function open() {
  const place = await createSqliteUrl();
  const { url, link } = await openFaultyLedger(place, "same");
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  await page.goto(`${url}/#sign-in=${link()}`);
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  const ledger = await openTestLedger(place);
  await sendHeartbeat(ledger);
  return { url, page, ledger };
}

/** Right to left by its letters, and by an override that never ends. */
const turned = ["GET /\u05e9\u05dc\u05d5\u05dd", "GET /\u202ereversed"];

/** Whether two texts of a page stand from left to right, as they were written. */
const areInOrder = (texts: readonly [string, string]) => `(() => {
  const placeOf = (text) => {
    const walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    while (walk.nextNode()) {
      const at = walk.currentNode.data.indexOf(text);
      if (at < 0) continue;
      range.setStart(walk.currentNode, at);
      range.setEnd(walk.currentNode, at + text.length);
      return range.getBoundingClientRect();
    }
    throw new Error(text + " is not there");
  };
  const [left, right] = ${JSON.stringify(texts)}.map(placeOf);
  return left.right <= right.left + 1;
})()`;

it.each(turned)("keeps a line around the route %j from left to right", async (route) => {
  const { url, page, ledger } = await open();
  const reason = "4 hours of repairs";
  await ledger.db
    .insertInto("stops")
    .values({ kind: "route", name: route, reason, stopped_at: Date.now() })
    .execute();
  await page.goto(`${url}/`);
  await page.getByText("New payments are stopped").waitFor();
  expect(await page.evaluate(areInOrder([route, reason]))).toBe(true);

  const { paymentId } = await sellForTest(ledger, { route });
  await page.goto(`${url}/payments/${paymentId}`);
  await page.getByText("Timeline").waitFor();
  const offer = await page.locator(".timeline > li").first().textContent();
  expect(offer).toMatch(/^Offeredtime not known10 units of 0x.*route GET .*wire x402v2/);
  const time = (await page.locator("p.soft > time").first().textContent()) ?? "";
  expect(await page.evaluate(areInOrder([route, time]))).toBe(true);
});

it("shows days and routes that only took charges back, and groups digits of unknown tokens", async () => {
  const { url, page, ledger } = await open();
  await takeBack(ledger);
  await page.goto(`${url}/`);
  const card = page.locator("section.card", { hasText: "Income of channels" });
  await card.waitFor();
  expect(await card.textContent()).toContain("−1,234,567 units of 0x0505…0505");
  expect(await card.textContent()).toContain("0 charges");
  await page.goto(`${url}/routes`);
  const table = page.getByRole("table", { name: "Routes" });
  await table.waitFor();
  expect(await table.textContent()).toContain("−2,469,134 units of 0x0505…0505");
});

it("exports no formula, also where semicolons separate cells", async () => {
  const { url, page, ledger } = await open();
  await sellForTest(ledger, { route: "GET /x?;=1+1;" });
  await sellForTest(ledger, { route: "=2+2", nonce: 1 });
  await page.goto(`${url}/payments`);
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export CSV" }).click();
  const csv = await readFile(await (await download).path(), "utf8");
  expect(csv).toContain("https://shop.example/x?;'=1+1;");
  expect(csv).toContain(",'=2+2,");
  expect(csv).not.toMatch(/[,;]"*[=+@-]/);
});

/** Parts of earlier charges, given back today, and tomorrow: midnight may pass. */
async function takeBack({ db, dialect }: LedgerContext): Promise<void> {
  const account = `0x${"40".repeat(20)}` as const;
  const key = { network: "eip155:9745", contract: account, channel_id: "0x01" } as const;
  const others = { payer: account, payer_authorizer: account, receiver: account };
  const terms = { ...key, ...others, receiver_authorizer: account, token: unknownToken };
  await db
    .insertInto("channel_terms")
    .values({ ...terms, withdraw_delay: 9, salt: "0x", created_at: 1 })
    .execute();
  const today = Math.floor(Date.now() / 86_400_000);
  const { encode } = dialect.amount;
  const sum = {
    ...key,
    route_id: 0,
    is_reversal: 1,
    count: encode(1n),
    amount: encode(1_234_567n),
  };
  const sums = [today, today + 1].map((day) => ({ ...sum, day }));
  await db.insertInto("channel_sums").values(sums).execute();
}
