import { openBrowser } from "@coinslot/pages/testing";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
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

async function open(place: string) {
  const { url, link } = await openFaultyLedger(place, "same");
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  await page.goto(`${url}/#sign-in=${link()}`);
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  return { url, page };
}

it("shows the routes of all time where an address has days that no list has", async () => {
  const { url, page } = await open(await createSqliteUrl());
  const faults: Error[] = [];
  page.on("pageerror", (error) => void faults.push(error));
  for (const days of ["1e99", "Infinity", "-1", "0.5", "constructor"]) {
    await page.goto(`${url}/routes?days=${days}`);
    await page.getByText("No route was asked for.").waitFor();
  }
  expect(faults).toEqual([]);
});

it("shows all of a route's name where it is longer than a line", async () => {
  const place = await createSqliteUrl();
  const { url, page } = await open(place);
  const ledger = await openTestLedger(place);
  await sendHeartbeat(ledger);
  const route = "GET /api/v1/:blockchain/:token/:address/token-balances";
  await sellForTest(ledger, { route });
  for (const path of ["routes", "payments", "books"]) {
    await page.goto(`${url}/${path}`);
    await page.locator("tbody td", { hasText: route }).waitFor();
    const isCut = `[...document.querySelectorAll("tbody :is(.lines, .cut)")].some((each) =>
      each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1)`;
    expect([path, await page.evaluate(isCut)]).toEqual([path, false]);
  }
});

it("keeps names of routes within a window, however long they are", async () => {
  const place = await createSqliteUrl();
  const { url, page } = await open(place);
  const ledger = await openTestLedger(place);
  await sendHeartbeat(ledger);
  const names = ["a", "b"].map((letter) => `GET /${letter.repeat(490)}`);
  const sales = [];
  for (const [nonce, route] of names.entries()) {
    sales.push(await sellForTest(ledger, { route, nonce }));
  }
  await page.setViewportSize({ width: 360, height: 800 });
  for (const [path, text] of [
    ["/payments?search=GET", "Several routes"],
    [`/payments/${sales[0]?.paymentId}`, "Timeline"],
    ["/routes", "GET /a"],
  ] as const) {
    await page.goto(`${url}${path}`);
    await page.getByText(text).first().waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
  }
});
