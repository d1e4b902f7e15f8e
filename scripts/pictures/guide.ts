import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { addWallet } from "@coinslot/pages/testing";
import { paywall } from "@coinslot/paywall";
import { headerName } from "@coinslot/protocol";
import type { Browser, Page } from "playwright-core";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { openTestShop, signPayment } from "../../packages/inspector/src/testing/test-shop.ts";
import { type ConsoleShop, consoleKey, openConsoleShop } from "../../test/support/console-shop.ts";

/** Takes a picture of this name, light and dark. */
type Take = (page: Page, name: string) => Promise<void>;

const narrow = { width: 720, height: 560 };
const wide = { width: 1080, height: 640 };
const tall = { width: 1080, height: 860 };

/** Screenshots along a newcomer's way: a purchase in a browser, its refund, and the books. */
export async function pictureGuide(browser: Browser, folder: string): Promise<string[]> {
  mkdirSync(folder, { recursive: true });
  const files: string[] = [];
  const take: Take = async (page, name) => {
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      const path = join(folder, `${name}-${colorScheme}.png`);
      await page.screenshot({ path, animations: "disabled", caret: "hide" });
      files.push(path);
    }
  };
  const shop = await openConsoleShop({
    gate: { paywall: paywall({ name: "Weather Ltd" }) },
    sold: { place: "Bern", forecast: "sun", high: 24, low: 13 },
  });
  try {
    for (const path of ["/reports/october", "/weather", "/weather", "/reports/november"]) {
      await shop.buy(path);
    }
    const transaction = await pictureBuyer(shop, browser, take);
    await pictureOperator(shop, { browser, take, transaction });
  } finally {
    await shop.close();
  }
  await pictureInspector(browser, take);
  return files;
}

/** A purchase on the paywall. Returns the hash of its transaction. */
async function pictureBuyer(shop: ConsoleShop, browser: Browser, take: Take): Promise<string> {
  const { devnet, url } = shop;
  const account = privateKeyToAccount(generatePrivateKey());
  await devnet.mint({ to: account.address, amount: 5_000_000n });
  const context = await browser.newContext({ viewport: narrow, locale: "en-GB" });
  let sign: () => void = () => undefined;
  const signing = new Promise<void>((resolve) => {
    sign = resolve;
  });
  await addWallet(context, {
    account,
    nodes: { [devnet.chainId]: devnet.rpcUrl },
    name: "My Wallet",
    intercept: ({ method }) => (method === "eth_signTypedData_v4" ? signing : undefined),
  });
  const page = await context.newPage();
  await page.goto(`${url}/weather?place=bern`);
  const pay = page.getByRole("button", { name: "Pay 0.001 USDT0 with My Wallet" });
  await pay.waitFor();
  await take(page, "paywall-offer");
  await pay.click();
  await page.getByText("Confirm").waitFor();
  await take(page, "paywall-wallet");
  sign();
  await page.getByText("Paid 0.001 USDT0").waitFor();
  await take(page, "paywall-answer");
  const hash = (await page.getByRole("link", { name: /^0x/ }).getAttribute("title")) ?? "";
  await context.close();
  return hash;
}

/** Finds the payment on the console, gives it back, checks the books, and looks at channels. */
async function pictureOperator(
  shop: ConsoleShop,
  { browser, take, transaction }: { browser: Browser; take: Take; transaction: string },
): Promise<void> {
  const { consoleUrl } = shop;
  await shop.mine();
  const page = await browser.newPage({ viewport: wide });
  await page.goto(consoleUrl);
  await page.getByLabel("Key of the console").fill(consoleKey);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  await page.getByRole("heading", { name: "Stages of a payment" }).waitFor();
  await take(page, "console-today");
  await page.goto(`${consoleUrl}/payments?search=${transaction}`);
  await page.locator("tbody a").first().waitFor();
  await take(page, "console-found");
  await page.locator("tbody a").first().click();
  await page.getByRole("heading", { name: "Timeline" }).waitFor();
  await take(page, "console-payment");
  await page.getByRole("button", { name: "Refund", exact: true }).click();
  await page.getByRole("button", { name: "Refund 0.001 USDT0" }).waitFor();
  await take(page, "console-refund");
  await page.getByRole("button", { name: "Refund 0.001 USDT0" }).click();
  await page.getByRole("heading", { name: "Refund begun" }).waitFor();
  for (let state = ""; state !== "final"; ) {
    await shop.mine();
    state = (await shop.facilitator.refunds.list()).refunds[0]?.state ?? "";
  }
  await page.goto(`${consoleUrl}/books`);
  await page.getByRole("cell", { name: "refund", exact: true }).first().waitFor();
  await page.getByRole("button", { name: "Check the books" }).click();
  const result = page.getByText("No difference.");
  await result.waitFor();
  await result.scrollIntoViewIfNeeded();
  await take(page, "console-books");
  await shop.buyByChannel(4);
  await shop.buyByChannel(12, { isWithdrawn: true });
  // Until the watcher has seen the withdrawal.
  for (let isShown = false; !isShown; ) {
    await page.goto(`${consoleUrl}/channels`);
    await page.locator("main:not(:has(.skeleton))").waitFor();
    isShown = await page.getByRole("heading", { name: "Payers withdraw" }).isVisible();
  }
  await page.setViewportSize(tall);
  await take(page, "console-channels");
  await page.close();
}

/** A payment that was signed under a wrong domain, as the inspector shows it. */
async function pictureInspector(browser: Browser, take: Take): Promise<void> {
  const shop = await openTestShop();
  try {
    const inspector = await shop.inspect({ rpcUrls: [shop.devnet.rpcUrl] });
    const ask = async (headers: Record<string, string>) => {
      const answer = await fetch(`${inspector.proxyUrl}/weather`, { headers });
      await answer.arrayBuffer();
    };
    for (const changes of [{}, { domain: { name: "USDC" } }]) {
      await ask({});
      await ask({ [headerName.paymentSignature]: (await signPayment(shop, changes)).header });
    }
    await inspector.settled();
    const page = await browser.newPage({ viewport: { width: 1080, height: 760 } });
    await page.goto(inspector.pageUrl);
    await page.getByRole("button", { name: /refused 402/ }).click();
    await page.getByText("Failed check: domain name.").waitFor();
    await take(page, "inspector-cycle");
    await page.close();
  } finally {
    await shop.close();
  }
}
