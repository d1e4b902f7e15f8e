import { findFaults, openBrowser } from "@coinslot/pages/testing";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { lockDatabaseFile } from "../../storage/src/sqlite/lock-file.ts";
import { createSqliteUrl } from "../../storage/src/testing/engines.ts";
import { openFaultyLedger, type schemas } from "./testing/faulty-ledger.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser?.close());

async function open(schema: keyof typeof schemas) {
  const place = await createSqliteUrl();
  const ledger = await openFaultyLedger(place, schema);
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  await page.goto(`${ledger.url}/#sign-in=${ledger.link()}`);
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  return { ...ledger, place, page };
}

it("says that the ledger is being brought up to date, and goes on by itself", async () => {
  const { page, bringUpToDate } = await open("older");
  await page.getByText("ledger_older").waitFor();
  await page.getByText("start it, or wait until it is ready").waitFor();
  expect(await findFaults(page)).toEqual([]);
  await page.getByText("Not live since").waitFor();
  await bringUpToDate();
  await page.getByText("Nothing in the ledger.").waitFor();
  expect(await page.locator(".fault").count()).toBe(0);
});

it("says that the ledger is of a newer release, and what to start", async () => {
  const { page } = await open("newer");
  await page.getByText("a newer release has used this database").waitFor();
  await page.getByText("Start the console of the release that the seller runs.").waitFor();
  await page.getByText("ledger_newer").waitFor();
  expect(await findFaults(page)).toEqual([]);
});

it("says that another process holds the ledger, and repeats the act once it has left", async () => {
  const { page, place } = await open("same");
  const lock = await vi.waitFor(() => lockDatabaseFile(place));
  await page.getByText("Nothing in the ledger.").waitFor();
  await page.getByRole("button", { name: "Stop new payments" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("What").selectOption("route");
  await dialog.getByLabel("Name").fill("GET /weather");
  await dialog.getByLabel("Reason").fill("Maintenance");
  await dialog.getByRole("button", { name: "Stop", exact: true }).click();
  await dialog.getByText("ledger_locked").waitFor();
  await dialog.getByText("Wait, or stop it.").waitFor();
  expect(await findFaults(page)).toEqual([]);
  lock?.release();
  await dialog.getByRole("button", { name: "Stop", exact: true }).click();
  await dialog.getByText("It is stopped").waitFor();
});
