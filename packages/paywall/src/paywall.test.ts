import { readFile } from "node:fs/promises";
import { findFaults } from "@coinslot/pages/testing";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { openWorld, type Visit, type World } from "./testing/open-world.ts";

let world: World;
const opened: Visit[] = [];

beforeAll(async () => {
  world = await openWorld({ name: "Weather Ltd" });
});

afterEach(async () => {
  world.interfere(undefined);
  world.runs.clear();
  await Promise.all(opened.splice(0).map((visit) => visit.close()));
});

afterAll(async () => {
  await world?.close();
});

async function visit(...options: Parameters<World["visit"]>): Promise<Visit> {
  const made = await world.visit(...options);
  opened.push(made);
  return made;
}

function payButton(page: Page) {
  return page.getByRole("button", { name: "Pay 0.001 USDT0 with Test Wallet" });
}

/** Lets the last opening be long ago. */
const forgetOpening = `(() => {
  const name = Object.keys(sessionStorage)[0];
  const kept = JSON.parse(sessionStorage.getItem(name));
  sessionStorage.setItem(name, JSON.stringify({ ...kept, openedAt: 0 }));
})()`;

describe("a purchase in a browser", () => {
  it("buys JSON, shows it with its receipt, and pays once", async () => {
    const { page, payments } = await visit();
    const answer = await page.goto(`${world.url}/json`);
    expect(answer?.status()).toBe(402);
    await payButton(page).click();
    await page.getByText("Paid 0.001 USDT0").waitFor();
    expect(await page.locator("#status pre").textContent()).toBe(
      '{\n  "forecast": "<b>sun</b>"\n}',
    );
    const link = page.getByRole("link", { name: /^0x/ });
    expect(await link.getAttribute("href")).toMatch(
      /^https:\/\/plasmascan\.to\/tx\/0x[0-9a-f]{64}$/,
    );
    expect([await payments(), world.runs.get("/json")]).toEqual([1, 1]);
  });

  it("shows JSON with its very numbers, names and escapes", async () => {
    const { page } = await visit();
    const sold =
      '{"id":12345678901234567890,"rate":1.10,"id":"\\u00e9 {a}: \\",b","of":[ [] , [-1e3]]}';
    world.interfere((_request, response) => void response.type("json").send(sold));
    await page.goto(`${world.url}/json`);
    await payButton(page).click();
    await page.getByText("Paid 0.001 USDT0").waitFor();
    expect(await page.locator("#status pre").textContent()).toBe(`{
  "id": 12345678901234567890,
  "rate": 1.10,
  "id": "\\u00e9 {a}: \\",b",
  "of": [
    [],
    [
      -1e3
    ]
  ]
}`);
  });

  it("shows JSON of very many levels as it was bought", async () => {
    const { page } = await visit();
    const sold = "[".repeat(100_000) + "]".repeat(100_000);
    world.interfere((_request, response) => void response.type("json").send(sold));
    await page.goto(`${world.url}/json`);
    await payButton(page).click();
    await page.getByText("Paid 0.001 USDT0").waitFor();
    const shown = await page.locator("#status pre").textContent();
    expect([shown?.length, shown === sold]).toEqual([sold.length, true]);
  });

  it("buys a page, and opens it by a navigation that pays nothing", async () => {
    const { page, payments } = await visit();
    await page.goto(`${world.url}/page?of=today`);
    await payButton(page).click();
    await page.getByRole("heading", { name: "Sold page" }).waitFor();
    expect(page.url()).toBe(`${world.url}/page?of=today`);
    expect([await payments(), world.runs.get("/page")]).toEqual([1, 1]);
    // The seller's page again is a purchase that was paid: it is shown, and not paid anew.
    await page.evaluate(forgetOpening);
    await page.reload();
    await page.getByText("You have paid for this page.").waitFor();
    // As often as it likes.
    for (let count = 0; count < 3; count += 1) {
      await page.getByRole("button", { name: "Show the answer" }).click();
      await page.getByRole("heading", { name: "Sold page" }).waitFor();
      await page.evaluate(forgetOpening);
      await page.reload();
    }
    expect([await payments(), world.runs.get("/page")]).toEqual([1, 1]);
  });

  it.each([
    [1, "opens"],
    [2, "offers"],
  ])("asks again where %i cookies were lost, and then %s the answer", async (losses, end) => {
    const { page, payments } = await visit();
    let lost = 0;
    await page.route(`${world.url}/page`, async (route) => {
      const isPaid = route.request().headers()["payment-signature"] !== undefined;
      if (!isPaid || lost === losses) return route.continue();
      lost += 1;
      const response = await route.fetch();
      const { "set-cookie": _cookie, ...headers } = response.headers();
      // The cookie is in the browser's jar already.
      await page.context().clearCookies();
      return route.fulfill({ response, headers });
    });
    await page.goto(`${world.url}/page`);
    await payButton(page).click();
    const shown =
      end === "opens"
        ? page.getByRole("heading", { name: "Sold page" })
        : page.getByRole("link", { name: "Save as a file" });
    await shown.waitFor();
    expect([lost, await payments(), world.runs.get("/page")]).toEqual([losses, 1, 1]);
  });

  it("buys by a form, and repeats it as it was", async () => {
    const { page, payments } = await visit();
    await page.goto(`${world.url}/start`);
    await page.getByRole("button", { name: "Order" }).click();
    await payButton(page).click();
    await page.getByRole("heading", { name: "Order" }).waitFor();
    expect(await page.locator("pre").textContent()).toBe(encodeURIComponent("Zürich & <b>"));
    expect([await payments(), world.runs.get("/form")]).toEqual([1, 1]);
  });

  it("buys a file, and saves it under its name", async () => {
    const { page, payments } = await visit();
    await page.goto(`${world.url}/file`);
    const saved = page.waitForEvent("download");
    await payButton(page).click();
    const download = await saved;
    expect(download.suggestedFilename()).toBe("report.pdf");
    expect(await readFile(await download.path(), "utf8")).toBe("%PDF-1.4 sold");
    expect(await payments()).toBe(1);
  });

  it("is made by the keyboard alone", async () => {
    const { page, payments } = await visit();
    await page.goto(`${world.url}/json`);
    await payButton(page).waitFor();
    for (let count = 0; count < 10; count += 1) {
      await page.keyboard.press("Tab");
      if (await page.evaluate("document.activeElement.textContent.startsWith('Pay 0.001')")) break;
    }
    await page.keyboard.press("Enter");
    await page.getByText("Paid 0.001 USDT0").waitFor();
    expect(await payments()).toBe(1);
  });

  it("buys again only when it is asked to", async () => {
    const { page, payments } = await visit();
    await page.goto(`${world.url}/json`);
    await payButton(page).click();
    await page.getByRole("button", { name: "Buy again" }).click();
    await payButton(page).click();
    await page.getByText("Paid 0.001 USDT0").waitFor();
    expect([await payments(), world.runs.get("/json")]).toEqual([2, 2]);
  });
});

describe("one payment for one purchase", () => {
  it("sends a signed payment again after the tab was closed while it was under way", async () => {
    const { page, payments } = await visit();
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    world.interfere((_request, _response, next) => void held.then(() => next()));
    await page.goto(`${world.url}/json`);
    await payButton(page).click();
    await expect.poll(() => world.runs.get("/json")).toBe(1);
    // As the browser keeps it for a tab that is reopened.
    const stored = await page.evaluate("JSON.stringify({ ...sessionStorage })");
    const reopened = await page.context().newPage();
    await page.close();
    world.interfere(undefined);
    release();
    await reopened.addInitScript(
      `for (const [name, value] of Object.entries(${stored})) sessionStorage.setItem(name, value)`,
    );
    await reopened.goto(`${world.url}/json`);
    await reopened.getByText("Paid 0.001 USDT0").waitFor();
    expect(await payments()).toBe(1);
  });

  it("keeps a payment that was signed and not sent, and finishes it by a click", async () => {
    const { page, payments, wallet } = await visit();
    await page.goto(`${world.url}/json`);
    // The tab closes between the wallet's signature and the request.
    await page.evaluate("globalThis.fetch = () => new Promise(() => undefined)");
    await payButton(page).click();
    await page.getByText("Paying.").waitFor();
    await page.evaluate(`(() => {
      const name = Object.keys(sessionStorage)[0];
      const { isSent, ...kept } = JSON.parse(sessionStorage.getItem(name));
      sessionStorage.setItem(name, JSON.stringify(kept));
    })()`);
    await page.reload();
    await page.getByRole("button", { name: "Finish the payment" }).click();
    await page.getByText("Paid 0.001 USDT0").waitFor();
    expect(await payments()).toBe(1);
    const signed = wallet?.requests.filter(({ method }) => method === "eth_signTypedData_v4");
    expect(signed).toHaveLength(1);
  });

  it("repeats the same payment after answers that were lost", async () => {
    const { page, payments } = await visit();
    let lost = 0;
    await page.route(`${world.url}/json`, async (route) => {
      if (route.request().headers()["payment-signature"] !== undefined && lost < 2) {
        lost += 1;
        // The seller has it, and its answer does not arrive.
        await route.fetch();
        await route.abort();
      } else await route.continue();
    });
    await page.goto(`${world.url}/json`);
    await payButton(page).click();
    await page.getByText("Paid 0.001 USDT0").waitFor();
    expect([lost, await payments(), world.runs.get("/json")]).toEqual([2, 1, 1]);
  });

  it("signs nothing new after a seller's error until the first has expired unused", async () => {
    const { page, payments, wallet } = await visit();
    world.interfere((_request, response) => void response.status(500).send("broken"));
    await page.goto(`${world.url}/json`);
    await payButton(page).click();
    await page.getByText("The seller could not deliver (500).").waitFor();
    // It may be a proxy's error, behind which the request still runs.
    await page.getByText("Whether money moves is not decided.").waitFor();
    await page.getByRole("button", { name: "Check with the wallet" }).click();
    await page.getByText("can still be used until").waitFor();
    expect(await payButton(page).isVisible()).toBe(false);
    world.interfere(undefined);
    await page.getByRole("button", { name: "Try the same payment again" }).click();
    await page.getByText("Paid 0.001 USDT0").waitFor();
    const signed = wallet?.requests.filter(({ method }) => method === "eth_signTypedData_v4");
    expect([signed?.length, await payments()]).toEqual([1, 1]);
  });
});

describe("the page", () => {
  it("has no fault for axe and a telephone, before and after a purchase", async () => {
    const { page } = await visit();
    await page.goto(`${world.url}/json`);
    await payButton(page).waitFor();
    expect(await findFaults(page)).toEqual([]);
    await page.getByText("Other ways to pay").click();
    await page.getByText("Details").click();
    expect(await findFaults(page)).toEqual([]);
    await payButton(page).click();
    await page.getByText("Paid 0.001 USDT0").waitFor();
    expect(await findFaults(page)).toEqual([]);
  });

  it("runs no script of a URL, a header or a description", async () => {
    const { page } = await visit();
    const faults: string[] = [];
    page.on("dialog", (dialog) => {
      faults.push(dialog.message());
      void dialog.dismiss();
    });
    page.on("pageerror", (error) => faults.push(error.message));
    await page.setExtraHTTPHeaders({ "Accept-Language": '"><script>alert(3)</script>' });
    const hostile =
      "/hostile?x='\"><script>alert(4)</script>&y=</script><img src=x onerror=alert(5)>";
    await page.goto(`${world.url}${hostile}`);
    await payButton(page).click();
    await page.getByText("Paid 0.001 USDT0").waitFor();
    expect(faults).toEqual([]);
    expect(await page.locator("h1").textContent()).toContain("<img src=x");
  });

  it("asks nobody but the seller", async () => {
    const { page } = await visit();
    const asked = new Set<string>();
    page.on("request", (request) =>
      asked.add(new URL(request.url()).protocol + new URL(request.url()).host),
    );
    await page.goto(`${world.url}/json`);
    await payButton(page).click();
    await page.getByText("Paid 0.001 USDT0").waitFor();
    expect([...asked].filter((each) => !each.startsWith("data:"))).toEqual([
      `http:${new URL(world.url).host}`,
    ]);
  });

  it("says what to do without a wallet, and without a script", async () => {
    const withoutWallet = await visit({ hasWallet: false });
    await withoutWallet.page.goto(`${world.url}/json`);
    await withoutWallet.page.getByText("No wallet was found in this browser.").waitFor();
    const withoutScript = await visit({ hasWallet: false, javaScriptEnabled: false });
    for (const { page } of [withoutWallet, withoutScript]) {
      await page.goto(`${world.url}/json`);
      expect(await page.getByText(`npx @coinslot/cli pay "${world.url}/json"`).isVisible()).toBe(
        true,
      );
      expect(await page.getByRole("img", { name: "QR" }).isVisible()).toBe(true);
      expect(await page.locator(".price").textContent()).toBe("0.001 USDT0 on Plasma");
    }
  });

  it.each([
    ["de-CH", "0.001 USDT0 mit Test Wallet zahlen", "0.001 USDT0 gezahlt"],
    ["zh-CN", "用 Test Wallet 支付 0.001 USDT0", "已支付 0.001 USDT0"],
    ["es-ES", "Pagar 0.001 USDT0 con Test Wallet", "Pagado: 0.001 USDT0"],
  ])("speaks %s", async (locale, pay, paid) => {
    const { page } = await visit({ locale });
    await page.goto(`${world.url}/json`);
    await page.getByRole("button", { name: pay }).click();
    await page.getByText(paid).waitFor();
    expect(await page.locator("html").getAttribute("lang")).toBe(locale.slice(0, 2));
  });
});
