import { recordAuditOperation } from "@coinslot/facilitator";
import { findFaults, openBrowser } from "@coinslot/pages/testing";
import type { Browser, BrowserContext, Page, Request } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ConsoleShop, consoleKey, openConsoleShop } from "../support/console-shop.ts";

/** A script in each part that a buyer chooses. It would name itself in the title. */
const script = '"><img src=x onerror=document.title="stolen">';
const hostile = `/reports/${encodeURIComponent(script)}?q=${encodeURIComponent(script)}`;
const pages = [
  ["Today", "/"],
  ["Payments", "/payments"],
  ["Routes", "/routes"],
  ["Buyers", "/buyers"],
  ["Channels", "/channels"],
  ["Refunds", "/refunds"],
  ["Books", "/books"],
  ["Webhooks", "/webhooks"],
  ["Relayers", "/relayers"],
  ["Chains", "/chains"],
  ["Audit", "/audit"],
] as const;

let shop: ConsoleShop;
let browser: Browser;
let context: BrowserContext;
let page: Page;
const said: string[] = [];

beforeAll(async () => {
  [shop, browser] = await Promise.all([openConsoleShop(), openBrowser()]);
  context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  page = await context.newPage();
  page.on("console", (message) => {
    if (message.type() === "error") said.push(message.text());
  });
  page.on("pageerror", (error) => said.push(String(error)));
  await page.goto(shop.consoleUrl);
  await page.getByLabel("Key of the console").fill(consoleKey);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  said.length = 0;
});

afterAll(async () => {
  await browser?.close();
  await shop?.close();
});

const open = async (path: string) => {
  await page.goto(`${shop.consoleUrl}${path}`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.locator("main:not(:has(.skeleton))").waitFor();
};

/** A page of the console as a person meets it. */
async function expectWell(title: string, path: string): Promise<void> {
  await open(path);
  const heading = await page.getByRole("heading", { level: 1 }).textContent();
  expect({ path, heading, faults: await findFaults(page) }).toEqual({
    path,
    heading: title,
    faults: [],
  });
  expect(await page.locator(".fault").count()).toBe(0);
  expect(said).toEqual([]);
}

describe("the console in a browser", () => {
  it.each(pages)("shows an empty %s, which axe finds no fault with", async (title, path) => {
    await expectWell(title, path);
    const lists = ["Payments", "Routes", "Buyers", "Channels", "Refunds", "Books"];
    if (lists.includes(title)) await page.locator(".empty").first().waitFor();
  });

  it("shows a sale on an open page, without a reload", async () => {
    await open("/payments");
    expect((await shop.buy("/weather")).status).toBe(200);
    await page.getByRole("link", { name: "GET /weather" }).waitFor();
  });

  it("shows the script that a buyer sent as a text, on every page", async () => {
    const init = { method: "POST", body: script, headers: { "user-agent": "<script>" } };
    expect((await shop.buy(hostile)).status).toBe(200);
    expect((await shop.buy("/translate", 1, init)).status).toBe(200);
    await open(`/payments?${new URLSearchParams({ search: script, route: script })}`);
    await page.getByText("No payment fits.").waitFor();
    for (const [title, path] of pages) await expectWell(title, path);
    await open("/payments?route=GET+/reports/:name");
    await page.locator("tbody a").first().click();
    await page.getByText("onerror").first().waitFor();
    expect(await findFaults(page)).toEqual([]);
    expect(await page.title()).toBe("Payment · Coinslot");
    expect(await page.locator("main img").count()).toBe(0);
  });

  it("finds a payment by each of its names, with the keyboard alone", async () => {
    const { payments } = await shop.facilitator.payments.list();
    const [payment] = payments;
    if (payment === undefined) throw new Error("Nothing was sold.");
    for (const name of [payment.id, payment.authorization.payer, payment.authorization.nonce]) {
      await open("/");
      await page.keyboard.press("/");
      await page.keyboard.type(name);
      await page.keyboard.press("Enter");
      await page.getByText("Found by its").waitFor();
      await page.locator("tbody tr").first().waitFor();
      await page.keyboard.press("Tab");
      await page.locator("#main").focus();
      await page.keyboard.press("j");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Timeline" }).waitFor();
      expect(await page.locator(".facts").first().textContent()).toMatch(/0\.0+\d+ XPL/);
    }
  });

  it("filters by the address, and exports what fits", async () => {
    await open("/payments");
    await page.getByText("Filters").click();
    await page.getByLabel("Route").fill("POST /translate");
    await page.keyboard.press("Enter");
    await page.waitForURL(/route=POST/);
    await page.getByRole("link", { name: "POST /translate" }).first().waitFor();
    await expect.poll(() => page.locator("tbody tr").count()).toBe(1);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Export CSV" }).click(),
    ]);
    const lines = await readLines(await download.createReadStream());
    expect(lines).toHaveLength(2);
    expect(lines[1]).toContain("POST /translate");
  });

  it.each([
    ["an export", "/payments", "Export CSV", "payments.list", '"limit":1000'],
    ["a check of the books", "/books", "Check the books", "books.check", ""],
  ])("ends %s whose page is left in the middle", async (_, path, name, operation, body) => {
    const isStep = (request: Request) =>
      request.url().endsWith(operation) && (request.postData() ?? "").includes(body);
    await open(path);
    const button = page.getByRole("button", { name });
    await button.waitFor();
    await page.route(`**/api/${operation}`, (route) =>
      isStep(route.request()) ? new Promise<void>(() => undefined) : route.continue(),
    );
    const asked = page.waitForRequest(isStep);
    await button.click();
    const request = await asked;
    const ended = page.waitForEvent("requestfailed", { predicate: (one) => one === request });
    await page.getByRole("link", { name: "Routes", exact: true }).click();
    expect((await ended).failure()?.errorText).toBe("net::ERR_ABORTED");
    await page.unroute(`**/api/${operation}`);
  });

  it("refunds once, in words, however often the button is pressed", async () => {
    await open("/payments?route=GET+/weather");
    await page.locator("tbody a").first().click();
    await page.getByRole("button", { name: "Refund", exact: true }).click();
    await page.getByText("zero point zero zero one USDT0").waitFor();
    await page.getByLabel("Amount in USDT0").fill("0.0004");
    await page.getByText("zero point zero zero zero four USDT0").waitFor();
    await page.getByLabel("Reason").fill(script);
    expect(await findFaults(page)).toEqual([]);
    await page.getByLabel("Amount in USDT0").fill("9");
    await page.getByText("At most 0.001 USDT0").waitFor();
    expect(
      await page
        .getByRole("dialog")
        .getByRole("button", { name: /^Refund/ })
        .isDisabled(),
    ).toBe(true);
    await page.getByLabel("Amount in USDT0").fill("0.0004");
    // The answer of the first request is lost: the second one has the same key.
    const keys: (string | undefined)[] = [];
    let isLost = false;
    await page.route("**/api/refunds.create", async (route) => {
      keys.push(route.request().headers()["idempotency-key"]);
      const answer = await route.fetch();
      if (isLost) return route.fulfill({ response: answer });
      isLost = true;
      return route.abort();
    });
    const button = page.getByRole("button", { name: "Refund 0.0004 USDT0" });
    await button.click();
    await page.getByText("unreachable").waitFor();
    await page.getByRole("button", { name: "Ask again" }).click();
    await page.getByRole("heading", { name: "Refund begun" }).waitFor();
    await page.unroute("**/api/refunds.create");
    said.length = 0;
    expect(new Set(keys).size).toBe(1);
    expect(keys).toHaveLength(2);
    const { refunds } = await shop.facilitator.refunds.list();
    expect(refunds.map(({ amount, reason }) => ({ amount, reason }))).toEqual([
      { amount: 400n, reason: script },
    ]);
    await page.getByRole("button", { name: "Done" }).click();
    await expect
      .poll(async () => {
        await shop.mine();
        return page.getByText("Refund confirmed").count();
      })
      .toBe(1);
    await expectWell("Refunds", "/refunds");
    await page.getByText("0.0004 USDT0").waitFor();
    expect(await page.title()).toBe("Refunds · Coinslot");
  });

  it("leads to Channels once the ledger has one", async () => {
    const link = page
      .getByRole("navigation", { name: "Pages", exact: true })
      .getByRole("link", { name: "Channels" });
    await open("/payments");
    await page.getByRole("link", { name: "Chains" }).waitFor();
    expect(await link.count()).toBe(0);
    await open("/channels");
    expect(await link.count()).toBe(1);
    await shop.buyByChannel(2);
    await open("/payments");
    await link.click();
    await page.getByRole("heading", { level: 1, name: "Channels" }).waitFor();
  });

  it("counts charges of channels, offers and refusals beside sales", async () => {
    await expectWell("Today", "/");
    const card = page.locator(".card", { hasText: "Income of channels" });
    expect(await card.textContent()).toMatch(/0\.002 USDT0.*2 charges/);
    const headers = { "payment-signature": "nonsense" };
    expect((await fetch(`${shop.url}/weather`, { headers })).status).toBe(400);
    await expect
      .poll(
        async () => {
          await open("/routes");
          return page.getByRole("cell", { name: "invalid_payload", exact: true }).count();
        },
        { timeout: 30_000 },
      )
      .toBe(1);
    expect(await findFaults(page)).toEqual([]);
    const row = page.getByRole("row", { name: /^GET \/weather/ });
    const cells = await row.first().getByRole("cell").allTextContents();
    const titles = await page.locator("table").first().getByRole("columnheader").allTextContents();
    const shown = Object.fromEntries(titles.map((title, index) => [title, cells[index]]));
    expect(shown).toMatchObject({ Charges: "2", Charged: "0.002 USDT0", Refused: "1" });
    await page.getByRole("link", { name: "All reasons" }).click();
    await page.getByRole("heading", { name: "Reasons in counts" }).waitFor();
  });

  it("shows a channel at risk before the others, and has it claimed", async () => {
    const id = await shop.buyByChannel(3, { isWithdrawn: true });
    await open("/channels");
    await expect
      .poll(
        async () => {
          await page.reload();
          await page.locator("main:not(:has(.skeleton))").waitFor();
          return page.getByRole("heading", { name: "Payers withdraw" }).count();
        },
        { timeout: 30_000 },
      )
      .toBe(1);
    for (const width of [360, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      await expectWell("Channels", "/channels");
    }
    const [first] = await page.locator("table").all();
    expect(await first?.textContent()).toMatch(/withdrawing.*0\.003 USDT0/);
    await page.getByRole("link", { name: "Unclaimed", exact: true }).click();
    await page.waitForURL(/show=unclaimed/);
    expect(await page.locator(".lists [aria-current]").textContent()).toBe("Unclaimed");
    await open(`/payments?search=${id.toUpperCase().replace("0X", "0x")}`);
    await page.getByRole("link", { name: id.slice(0, 12) }).waitFor();
    expect(await findFaults(page)).toEqual([]);
    await page.getByRole("link", { name: id.slice(0, 12) }).click();
    await page.waitForURL(`**/channels/${id}`);
    await open("/channels?show=unclaimed");
    await page
      .getByRole("link", { name: id.slice(0, 12) })
      .first()
      .click();
    await page.getByRole("heading", { name: "Channel", exact: true }).waitFor();
    await page.getByText("claim", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Claim" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Claim" }).click();
    await page.getByText("Plasma: nothing was sent").waitFor();
    expect(await findFaults(page)).toEqual([]);
    await page.getByRole("button", { name: "Done" }).click();
    await shop.devnet.client.setAutomine(true);
    await expect
      .poll(
        async () => {
          await shop.mine();
          await page.reload();
          await page.locator("main:not(:has(.skeleton))").waitFor();
          return page.locator("tbody .state").first().textContent();
        },
        { timeout: 30_000 },
      )
      .toBe("done");
    expect(await findFaults(page)).toEqual([]);
    expect(await page.title()).toBe("Channel · Coinslot");
  });

  it("checks the books, which agree with the sale and its refund", async () => {
    await open("/books");
    await page.getByRole("cell", { name: "refund", exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Check the books" }).click();
    await page.getByText("No difference.").waitFor();
    expect(await findFaults(page)).toEqual([]);
  });

  it("lists each act with its session, by filters and pages of the address", async () => {
    const { operator } = shop.facilitator;
    const act = { operation: "shop.<b>reprice</b>", outcome: "refused", message: script } as const;
    for (let entry = 0; entry < 51; entry += 1) {
      await operator.run(recordAuditOperation, { ...act, argument: { entry, script } });
    }
    await open("/audit");
    await page.getByText(act.operation).first().waitFor();
    expect(await page.locator("tbody tr").count()).toBe(50);
    for (const width of [360, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      const columns = await columnsOf(page);
      const entry = page.locator("tbody button[aria-expanded]").first();
      await entry.click();
      await page.locator("tbody pre").first().getByText("onerror").waitFor();
      expect(await columnsOf(page)).toEqual(columns);
      expect(await findFaults(page)).toEqual([]);
      await entry.click();
      expect(await page.locator("tbody pre").count()).toBe(0);
    }
    await page.getByRole("link", { name: "Older" }).click();
    await page.waitForURL(/cursor=\d+/);
    await page.getByRole("link", { name: "Newest" }).waitFor();
    await page.getByText("refunds.create").first().waitFor();
    await page.getByText("session.open").first().waitFor();

    await page.getByText("Filters").click();
    await page.getByLabel("Operation").fill("refunds.create");
    await page.keyboard.press("Enter");
    await page.waitForURL(/operation=refunds.create/);
    await expect.poll(() => page.locator("tbody tr").count()).toBe(1);
    expect(await page.locator("tbody").textContent()).toMatch(/console [0-9a-f]{8} \(key\)/);
    await page.locator("tbody a").click();
    await page.getByText("Found by its").waitFor();
    await open("/audit?operation=none.such");
    await page.getByText("No entry fits.").waitFor();
    expect(await findFaults(page)).toEqual([]);
    expect(await page.title()).toBe("Audit · Coinslot");
  });

  it("says how old its data is when the console goes", async () => {
    await open("/payments");
    await page.route("**/api/**", (route) => route.abort());
    await shop.buy("/weather", 1);
    await page.locator(".stale").waitFor();
    await page.getByText("The console does not answer.").waitFor();
    expect(await page.locator("tbody tr").count()).toBeGreaterThan(0);
    await page.unroute("**/api/**");
    said.length = 0;
  });

  it("ends with the session, and comes back to the same page", async () => {
    await open("/routes");
    await context.clearCookies();
    await page.reload();
    await page.getByLabel("Key of the console").fill(consoleKey);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Routes" }).waitFor();
  });
});

/** Where the columns of the page's table begin, and how wide it is. */
const columnsOf = (shown: Page) =>
  shown.evaluate<number[]>(`[
    ...[...document.querySelectorAll("th")].map((head) => head.getBoundingClientRect().left),
    document.querySelector("table")?.scrollWidth,
    document.documentElement.scrollWidth,
  ]`);

async function readLines(stream: AsyncIterable<Uint8Array>): Promise<string[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString().trim().split("\r\n");
}
