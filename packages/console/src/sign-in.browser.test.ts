import { operatorAt } from "@coinslot/facilitator";
import { findFaults, openBrowser } from "@coinslot/pages/testing";
import type { Browser, Page, Request } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { StartConsoleOptions } from "./start-console.ts";
import { startTestConsole } from "./testing/signed-in.ts";

const key = "k".repeat(40);
/** Sign-in asks for no ledger. */
const operator = operatorAt("sqlite:/nonexistent/ledger.db");

let browser: Browser;
beforeAll(async () => {
  browser = await openBrowser();
});
afterAll(() => browser?.close());

async function open(options: StartConsoleOptions = {}) {
  const started = await startTestConsole(operator, options);
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  return { ...started, page };
}

const isSignedIn = (page: Page) => page.getByRole("button", { name: "Sign out" }).waitFor();

describe("the sign-in page", () => {
  it("signs in by the link of the terminal, which leaves the address bar", async () => {
    const { page, url, link } = await open();
    await page.goto(`${url}/payments#sign-in=${link()}`);
    await isSignedIn(page);
    expect(page.url()).toBe(`${url}/payments`);
    await page.reload();
    await isSignedIn(page);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  });

  it("says that a link was used, and prints a fresh one on demand", async () => {
    const { page, url, link, printed } = await open();
    await page.goto(`${url}/#sign-in=${link()}x`);
    await page.getByText("link_used").waitFor();
    expect(await page.getByText("Ask for a fresh link").isVisible()).toBe(true);
    expect(await findFaults(page)).toEqual([]);
    expect(printed).toHaveLength(2);
  });

  it("signs in by the key, and says that another is wrong", async () => {
    const { page, url } = await open({ key });
    await page.goto(url);
    await page.getByLabel("Key of the console").fill("w".repeat(40));
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("wrong_key").waitFor();
    expect(await findFaults(page)).toEqual([]);
    await page.getByLabel("Key of the console").fill(key);
    await page.keyboard.press("Enter");
    await isSignedIn(page);
  });

  it("asks nothing of another origin, and needs at most 100 KB", async () => {
    const { page, url, link } = await open();
    const asked: string[] = [];
    const finished: Request[] = [];
    page.on("request", (request) => asked.push(request.url()));
    page.on("requestfinished", (request) => finished.push(request));
    await page.goto(`${url}/#sign-in=${link()}`);
    await isSignedIn(page);
    const sizes = await Promise.all(finished.map((request) => request.sizes()));
    const bytes = sizes.reduce((sum, size) => sum + size.responseBodySize, 0);
    expect(asked.filter((address) => !/^data:/.test(address) && !address.startsWith(url))).toEqual(
      [],
    );
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThan(100_000);
  });
});
