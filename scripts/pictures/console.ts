import { createRefundOperation } from "@coinslot/facilitator";
import { takePictures } from "@coinslot/pages/testing";
import type { Browser } from "playwright-core";
import { type ConsoleShop, consoleKey, openConsoleShop } from "../../test/support/console-shop.ts";

const pages = {
  today: "/",
  payments: "/payments",
  routes: "/routes",
  buyers: "/buyers",
  channels: "/channels",
  refunds: "/refunds",
  books: "/books",
  webhooks: "/webhooks",
  relayers: "/relayers",
  chains: "/chains",
  audit: "/audit",
};
const bought = [
  ...["/weather", "/reports/november", "/weather", "/weather", "/reports/october?pages=2"],
  ...["/weather", "/reports/september", "/weather"],
];

/** Screenshots of every page of the console. */
export async function pictureConsole(browser: Browser, folder: string): Promise<string[]> {
  const shop = await openConsoleShop();
  try {
    return await pictureShop(shop, browser, folder);
  } finally {
    await shop.close();
  }
}

async function pictureShop(shop: ConsoleShop, browser: Browser, folder: string): Promise<string[]> {
  const payment = await sellAndRefund(shop);
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  const files: string[] = [];
  const take = async (name: string) => {
    await page.locator("main:not(:has(.skeleton))").waitFor();
    files.push(...(await takePictures(page, { folder, name: `console-${name}` })));
  };
  await shop.buyByChannel(4);
  const channel = await shop.buyByChannel(12, { isWithdrawn: true });
  await page.goto(shop.consoleUrl);
  await page.getByLabel("Key of the console").waitFor();
  await take("sign-in");
  await page.getByLabel("Key of the console").fill(consoleKey);
  await page.keyboard.press("Enter");
  for (const [name, path] of Object.entries(pages)) {
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    await page.goto(`${shop.consoleUrl}${path}`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await take(name);
  }
  await page.locator("tbody button[aria-expanded]").last().click();
  await take("audit-entry");
  await page.goto(`${shop.consoleUrl}/channels/${channel}`);
  await page.getByRole("heading", { name: "Timeline" }).waitFor();
  await take("channel");
  await page.goto(`${shop.consoleUrl}/payments/${payment}`);
  await page.getByRole("heading", { name: "Timeline" }).waitFor();
  await take("payment");
  await page.getByRole("button", { name: "Refund", exact: true }).click();
  await take("refund");
  await page.goto(`${shop.consoleUrl}/payments?search=nothing`);
  await page.locator(".empty").waitFor();
  await take("nothing-found");
  return files;
}

/** Returns the newest payment's id, a part of which is given back. */
async function sellAndRefund(shop: ConsoleShop): Promise<string> {
  for (const [index, path] of bought.entries()) await shop.buy(path, index % 2);
  await shop.buy("/translate", 0, { method: "POST", body: "Guten Tag" });
  await shop.mine();
  const [payment] = (await shop.facilitator.payments.list({ limit: 1 })).payments;
  if (payment === undefined) throw new Error("Nothing was sold.");
  const { id } = await shop.facilitator.operator.run(createRefundOperation, {
    payment: payment.id,
    amount: "400",
    reason: "The translation was too short",
    idempotencyKey: "pictures",
  });
  for (let state = ""; state !== "final"; ) {
    await shop.mine();
    state = (await shop.facilitator.refunds.get(id))?.state ?? "";
  }
  return payment.id;
}
