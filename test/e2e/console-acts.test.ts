import { startConsole } from "@coinslot/console";
import { findFaults, openBrowser } from "@coinslot/pages/testing";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { attentionCodes } from "../../packages/facilitator/src/reads/today/attention-codes.ts";
import { openDatabase } from "../../packages/storage/src/database.ts";
import { type ConsolePage, openConsolePage } from "../support/console-page.ts";
import { type ConsoleShop, openConsoleShop } from "../support/console-shop.ts";

const readerKey = "reader-key-".padEnd(40, "0");
/** A refund that met a fault of the node looks again after 15 seconds. */
const patience = { timeout: 90_000, interval: 250 };
let shop: ConsoleShop;
let browser: Browser;
let operator: ConsolePage;

beforeAll(async () => {
  [shop, browser] = await Promise.all([openConsoleShop({ console: { readerKey } }), openBrowser()]);
  operator = await openConsolePage(browser, shop.consoleUrl);
});

afterAll(async () => {
  await browser?.close();
  await shop?.close();
});

/** Sells once, and opens the page of the payment. @returns its id */
async function openSale({ open }: ConsolePage): Promise<string> {
  expect((await shop.buy("/weather")).status).toBe(200);
  const [payment] = (await shop.facilitator.payments.list({ limit: 1 })).payments;
  if (payment === undefined) throw new Error("Nothing was sold.");
  await open(`/payments/${payment.id}`);
  return payment.id;
}

const refundsOf = async (payment: string) =>
  (await shop.facilitator.refunds.list({ payment })).refunds.map(({ amount }) => amount);

const openRefund = (page: Page) =>
  page.getByRole("button", { name: "Refund", exact: true }).click();

/**
 * Loses the answers of an act for as long as `isLost` says: the act itself happens.
 *
 * @returns the idempotency keys that were sent
 */
async function loseAnswers(page: Page, act: string, isLost: (attempt: number) => boolean) {
  const keys: (string | undefined)[] = [];
  await page.route(`**/api/${act}`, async (route) => {
    keys.push(route.request().headers()["idempotency-key"]);
    const answer = await route.fetch();
    return isLost(keys.length) ? route.abort() : route.fulfill({ response: answer });
  });
  return keys;
}

describe("a refund in the console whose answer was lost", () => {
  it("is repeated with its first key after a reload, and a second one is asked for", async () => {
    const { page } = operator;
    const payment = await openSale(operator);
    const keys = await loseAnswers(page, "refunds.create", (attempt) => attempt === 1);
    await openRefund(page);
    await page.getByLabel("Amount in USDT0").fill("0.0004");
    await page.getByLabel("Reason").fill("Too late");
    await page.getByRole("button", { name: "Refund 0.0004 USDT0" }).click();
    await page.getByText("unreachable").waitFor();

    await page.reload();
    await openRefund(page);
    await page.getByText("has had no answer").waitFor();
    expect(await page.getByLabel("Amount in USDT0").inputValue()).toBe("0.0004");
    expect(await page.getByLabel("Reason").inputValue()).toBe("Too late");
    expect(await page.getByLabel("Amount in USDT0").isEditable()).toBe(false);
    await page.getByRole("button", { name: "Ask again" }).click();
    await page.getByRole("heading", { name: "Refund begun" }).waitFor();
    expect(new Set(keys).size).toBe(1);
    expect(await refundsOf(payment)).toEqual([400n]);

    await page.getByRole("button", { name: "Done" }).click();
    await openRefund(page);
    await page.getByText("Refunded already: 0.0004 USDT0").waitFor();
    await page.getByLabel("Amount in USDT0").fill("0.0004");
    await page.getByLabel("Reason").fill("Too late");
    await page.getByRole("button", { name: "Refund 0.0004 USDT0 again" }).click();
    await page.getByRole("heading", { name: "Refund begun" }).waitFor();
    await page.getByRole("button", { name: "Done" }).click();
    expect(new Set(keys).size).toBe(2);
    expect(await refundsOf(payment)).toEqual([400n, 400n]);
    await page.unroute("**/api/refunds.create");
  });

  it("is the same one in a dialog that was closed and opened again", async () => {
    const { page } = operator;
    const payment = await openSale(operator);
    const keys = await loseAnswers(page, "refunds.create", (attempt) => attempt < 3);
    await openRefund(page);
    await page.getByLabel("Amount in USDT0").fill("0.0007");
    await page.getByRole("button", { name: "Refund 0.0007 USDT0" }).click();
    for (let attempt = 1; attempt < 3; attempt += 1) {
      await page.getByText("unreachable").waitFor();
      await page.getByRole("button", { name: "Cancel" }).click();
      await openRefund(page);
      // More than what is left by now: the refund has happened.
      await page.getByRole("button", { name: "Ask again" }).click();
    }
    await page.getByRole("heading", { name: "Refund begun" }).waitFor();
    expect(new Set(keys).size).toBe(1);
    expect(keys).toHaveLength(3);
    expect(await refundsOf(payment)).toEqual([700n]);
    await page.unroute("**/api/refunds.create");
  });
});

it("prints the receipt of a payment, in its own type, and not the page around it", async () => {
  const { page } = operator;
  const payment = await openSale(operator);
  await page.evaluate(`{
    const frame = HTMLIFrameElement.prototype;
    const own = Object.getOwnPropertyDescriptor(frame, "contentWindow").get;
    const printed = [];
    Object.assign(window, { printed, print: () => printed.push("page") });
    Object.defineProperty(frame, "contentWindow", {
      get() {
        return { print: () => printed.push(own.call(this).document.title) };
      },
    });
  }`);
  await page.getByRole("button", { name: "Print the receipt" }).click();
  await expect.poll(() => page.evaluate("printed")).toEqual(["Receipt, 0.001 USDT0"]);
  const receipt = page.frameLocator("#receipt");
  expect(await receipt.locator("h1").textContent()).toBe("0.001 USDT0");
  expect(await receipt.locator("dl").textContent()).toContain(payment);
  const size = 'getComputedStyle(document.querySelector("h1")).fontSize';
  expect(await receipt.locator("h1").evaluate(size)).toBe("28px");
});

it("has no button for a reader, and refuses its acts", async () => {
  const reader = await openConsolePage(browser, shop.consoleUrl, { key: readerKey });
  onTestFinished(() => reader.context.close());
  const { page, open } = reader;
  await page.getByText("reads only").waitFor();
  const id = await openSale(reader);
  await page.getByRole("button", { name: "Print the receipt" }).waitFor();
  const buttons = () => page.locator("main button:not(.copyable)").allTextContents();
  expect(await buttons()).toEqual(["Print the receipt"]);
  for (const path of ["/", "/refunds", "/webhooks", "/relayers"]) {
    await open(path);
    expect(await buttons(), path).toEqual([]);
  }
  await open("/books?month=2020-01");
  expect(await buttons()).toEqual(["Check the books"]);
  // By hand, with all that the page has.
  const answer = await page.evaluate(`(async () => {
    const response = await fetch("/api/refunds.create", {
      method: "POST",
      body: JSON.stringify({ payment: ${JSON.stringify(id)} }),
      headers: {
        "Content-Type": "application/json",
        "Idempotency-Key": "k".repeat(32),
        "X-Coinslot-Token": localStorage.getItem("coinslot-token:"),
      },
    });
    return [response.status, await response.json()];
  })()`);
  expect(answer).toMatchObject([403, { code: "role_needed" }]);
  expect(await refundsOf(id)).toEqual([]);
});

it("approves a refund that waits for its operator, and gives another up", {
  timeout: 3 * patience.timeout,
}, async () => {
  const { page, open } = operator;
  const { devnet, facilitator } = shop;
  const sold = [await openSale(operator), await openSale(operator)];
  // Once the buyer has code, a refund of another test would wait for the operator, too.
  await expect
    .poll(async () => {
      await shop.mine();
      const { refunds } = await facilitator.refunds.list();
      return refunds.map(({ state }) => state).filter((state) => state !== "final");
    }, patience)
    .toEqual([]);
  const { address } = devnet.accounts.buyer;
  await devnet.client.setCode({ address, bytecode: "0x00" });
  onTestFinished(() => devnet.client.setCode({ address, bytecode: "0x" }));
  const ids: string[] = [];
  for (const payment of sold) {
    ids.push((await facilitator.refunds.create({ payment, idempotencyKey: payment })).id);
  }
  const states = () =>
    Promise.all(ids.map(async (id) => (await facilitator.refunds.get(id))?.state));
  await expect
    .poll(async () => {
      await shop.mine();
      return states();
    }, patience)
    .toEqual(["review", "review"]);
  await open("/");
  await page.getByRole("link", { name: "Open these refunds" }).click();
  await page.waitForURL(/state=review/);
  const row = (payment: string | undefined) =>
    page.locator("tbody tr", { has: page.locator(`a[href$="${payment}"]`) });
  await row(sold[0]).getByRole("button", { name: "Approve" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("zero point zero zero one USDT0").waitFor();
  expect(await findFaults(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Approve" }).click();
  await dialog.getByText("The refund goes on").waitFor();
  // The words of the act stay, though its row has left the list.
  await row(sold[0]).waitFor({ state: "detached" });
  await dialog.getByRole("button", { name: "Done" }).click();
  await row(sold[1]).getByRole("button", { name: "Cancel it" }).click();
  await dialog.getByRole("button", { name: "Cancel the refund" }).click();
  await dialog.getByText("No money has moved").waitFor();
  await page.getByText("No refund is review.").waitFor();
  await dialog.getByRole("button", { name: "Done" }).click();
  await expect
    .poll(async () => {
      await shop.mine();
      return states();
    }, patience)
    .toEqual(["final", "void"]);
});

it("stops new payments on a network, and resumes", async () => {
  const { page, open } = operator;
  await open("/");
  await page.getByRole("button", { name: "Stop new payments" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill(shop.devnet.network);
  await dialog.getByLabel("Reason").fill("Maintenance until noon");
  expect(await findFaults(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Stop", exact: true }).click();
  await dialog.getByText("It is stopped").waitFor();
  await dialog.getByRole("button", { name: "Done" }).click();
  // A busy machine may have other things that need a person.
  const item = page.getByRole("listitem").filter({ hasText: "New payments are stopped" });
  await item.getByText("Maintenance until noon").waitFor();
  await item.getByRole("link", { name: "Runbook" }).click();
  await page.getByRole("heading", { name: "Stop selling" }).waitFor();
  await page.goBack();
  expect((await shop.buy("/weather")).status).toBe(503);
  await item.getByRole("button", { name: "Resume" }).click();
  await dialog.getByRole("button", { name: "Resume" }).click();
  await dialog.getByText("It goes on.").waitFor();
  await item.waitFor({ state: "detached" });
  await dialog.getByRole("button", { name: "Done" }).click();
  expect((await shop.buy("/weather")).status).toBe(200);
});

it("closes a month once, though the answer was lost", async () => {
  const { page, open } = operator;
  const now = new Date();
  const month = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1)).toISOString();
  const end = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth())).toISOString();
  await open(`/books?month=${month.slice(0, 7)}`);
  const keys = await loseAnswers(page, "books.close", (attempt) => attempt === 1);
  const close = async () => {
    await page.getByRole("button", { name: "Close the month" }).click();
    await page.getByText(`Close all periods before ${end.slice(0, 10)}?`).waitFor();
    await page.getByRole("button", { name: "Close the books" }).click();
  };
  await close();
  await page.getByText("unreachable").waitFor();
  await page.reload();
  await close();
  await page.getByText(`All periods before ${end.slice(0, 10)} are closed.`).waitFor();
  expect(await findFaults(page)).toEqual([]);
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("cell", { name: end.slice(0, 10) }).waitFor();
  expect(keys).toHaveLength(2);
  expect(new Set(keys).size).toBe(1);
  await page.unroute("**/api/books.close");
  // This month has not ended.
  await open("/books");
  expect(await page.getByRole("button", { name: "Close the month" }).count()).toBe(0);
});

interface Delivery {
  event_seq: number;
  key: string;
  state: string;
  attempts: number;
  error: string | null;
}

it("sends a webhook again that was given up, and a test", async () => {
  const { page, open } = operator;
  const payment = await openSale(operator);
  const database = await openDatabase<{ outbox_deliveries: Delivery }>({
    ...{ url: shop.ledger, poolSize: 1 },
  });
  onTestFinished(() => database.close());
  const { kysely: db } = database;
  const seqs = async (state: string) => {
    const query = db.selectFrom("outbox_deliveries").select("event_seq").where("key", "=", payment);
    return (await query.where("state", "=", state).orderBy("event_seq").execute()).map(
      ({ event_seq }) => event_seq,
    );
  };
  await expect.poll(() => seqs("delivered")).not.toEqual([]);
  const [seq = 0] = await seqs("delivered");
  // As after fifteen attempts in three days.
  await db
    .updateTable("outbox_deliveries")
    .set({ state: "dead", attempts: 15, error: "it answered 500" })
    .where("event_seq", "=", seq)
    .execute();
  await open("/webhooks");
  const row = page.locator("tbody tr", { hasText: payment });
  await row.getByText("it answered 500").waitFor();
  expect(await findFaults(page)).toEqual([]);
  await row.getByRole("button", { name: "Send again" }).click();
  await page.getByText("1 event is on its way again.").waitFor();
  await page.getByText("No event was given up.").waitFor();
  await expect.poll(() => seqs("delivered")).toContain(seq);
  await page.getByRole("button", { name: "Send a test" }).click();
  await page.getByText("A test is on its way").waitFor();
});

it("confirms a large refund in each of two windows by a code of its own", async () => {
  const printed: string[] = [];
  const print = (line: string) => void printed.push(line);
  const careful = await startConsole(shop.facilitator, { port: 0, confirmAbove: "0", print });
  onTestFinished(careful.close);
  const first = await openConsolePage(browser, (printed.at(-1) ?? "").trim());
  onTestFinished(() => first.context.close());
  const windows = [first, await first.another()];
  const sold: string[] = [];
  for (const window of windows) {
    sold.push(await openSale(window));
    await openRefund(window.page);
    await window.page.getByRole("button", { name: "Refund 0.001 USDT0" }).click();
    await window.page.getByText(`for the payment ${sold.at(-1)}.`).waitFor();
  }
  const codes = sold.map((id) => printed.find((line) => line.includes(id))?.slice(-8) ?? "");
  for (const [index, { page }] of windows.entries()) {
    // That of the other window first.
    await page.getByLabel("Code of the terminal").fill(codes[1 - index] ?? "");
    await page.getByRole("button", { name: "Refund 0.001 USDT0" }).click();
    if (index === 0) await page.getByText("wrong_confirmation").waitFor();
    await page.getByLabel("Code of the terminal").fill(codes[index] ?? "");
    await page.getByRole("button", { name: "Refund 0.001 USDT0" }).click();
    await page.getByRole("heading", { name: "Refund begun" }).waitFor();
  }
  for (const id of sold) expect(await refundsOf(id)).toEqual([1_000n]);
});

it.each([360, 3840])("fits into a screen of %i pixels", async (width) => {
  const { page, open } = operator;
  await page.setViewportSize({ width, height: 900 });
  await open("/webhooks");
  await page.getByRole("button", { name: "Send a test" }).waitFor();
  const receivers = page.getByRole("region", { name: "Receivers" });
  expect(await receivers.evaluate((table) => table.scrollWidth - table.clientWidth)).toBe(0);
  const payment = await openSale(operator);
  const paths = ["/", "/payments", "/routes", "/buyers", "/refunds", "/books", "/webhooks"];
  for (const path of [...paths, "/relayers", "/chains", "/audit", `/payments/${payment}`]) {
    await open(path);
    expect(await page.evaluate("document.documentElement.scrollWidth"), path).toBe(width);
    const current = page.locator("nav [aria-current]");
    const { x = -1, width: size = 0 } = (await current.boundingBox()) ?? {};
    expect(x, path).toBeGreaterThanOrEqual(0);
    expect(x + size, path).toBeLessThanOrEqual(width);
  }
  await openRefund(page);
  const { width: asked = 0 } = (await page.getByRole("dialog").boundingBox()) ?? {};
  expect(asked).toBeLessThanOrEqual(width);
  await page.setViewportSize({ width: 1280, height: 800 });
});

it("has every runbook that an item among those that need a person names", async () => {
  const { page, open } = operator;
  for (const runbook of new Set(Object.values(attentionCodes).map((each) => each.runbook))) {
    const [name, section] = runbook.split("#");
    await open(`/runbooks/${name}${section === undefined ? "" : `?section=${section}`}`);
    await page.locator(".prose h2, .prose h3").first().waitFor();
  }
  expect(await findFaults(page)).toEqual([]);
  await open("/runbooks/operating.md");
  await page.getByRole("heading", { name: "Stop selling" }).waitFor();
  expect(await findFaults(page)).toEqual([]);
  await open("/runbooks/of-a-later-release.md");
  await page.getByText("has no such page").waitFor();
});
