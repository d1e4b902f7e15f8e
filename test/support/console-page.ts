import type { Browser, BrowserContext, Page } from "playwright-core";
import { consoleKey } from "./console-shop.ts";

/** A window of the console, signed in. */
export interface ConsolePage {
  page: Page;
  context: BrowserContext;
  /** Goes to a page of the console, and waits until it shows its data. */
  open(path: string): Promise<void>;
  /** A further window of the same session. */
  another(): Promise<ConsolePage>;
}

/** Opens a window of a console, and signs in by its key, or by the link of its URL. */
export async function openConsolePage(
  browser: Browser,
  url: string,
  { key = consoleKey, viewport = { width: 1280, height: 800 } } = {},
): Promise<ConsolePage> {
  const context = await browser.newContext({ viewport });
  const window = await openWindow(context, url);
  await window.page.goto(url);
  if (!url.includes("#sign-in=")) {
    await window.page.getByLabel("Key of the console").fill(key);
    await window.page.keyboard.press("Enter");
  }
  await window.page.getByRole("button", { name: "Sign out" }).waitFor();
  return window;
}

async function openWindow(context: BrowserContext, url: string): Promise<ConsolePage> {
  const page = await context.newPage();
  return {
    page,
    context,
    async open(path) {
      await page.goto(`${new URL(url).origin}${path}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.locator("main:not(:has(.skeleton))").waitFor();
    },
    another: () => openWindow(context, url),
  };
}
