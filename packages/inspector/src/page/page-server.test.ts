import { request } from "node:http";
import { text } from "node:stream/consumers";
import { createPayingFetch } from "@coinslot/client";
import { findFaults, openBrowser, takePictures } from "@coinslot/pages/testing";
import { headerName } from "@coinslot/protocol";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Inspector } from "../create-inspector.ts";
import { openTestShop, signPayment, type TestShop } from "../testing/test-shop.ts";

let shop: TestShop;
let browser: Browser;
beforeAll(async () => {
  [shop, browser] = await Promise.all([openTestShop(), openBrowser()]);
});
afterAll(async () => {
  await browser?.close();
  await shop?.close();
});

/** An inspector through which a purchase and a refused payment have gone. */
async function inspectBoth(): Promise<Inspector> {
  const { accounts, network, rpcUrl } = shop.devnet;
  const inspector = await shop.inspect({ rpcUrls: [rpcUrl] });
  const pay = createPayingFetch({
    account: accounts.buyer,
    rpcUrls: { [network]: rpcUrl },
    budget: { perPayment: "$0.01" },
  });
  expect((await pay(`${inspector.proxyUrl}/weather?paid`)).status).toBe(200);
  const url = `${inspector.proxyUrl}/weather?refused`;
  await (await fetch(url)).arrayBuffer();
  const { header } = await signPayment(shop, { domain: { name: "USDC" } });
  const refused = await fetch(url, { headers: { [headerName.paymentSignature]: header } });
  expect(refused.status).toBe(402);
  await refused.arrayBuffer();
  await inspector.settled();
  return inspector;
}

/** A page of the inspector, and the faults that its console reports. */
async function openPage(inspector: Inspector): Promise<{ page: Page; faults: string[] }> {
  const page = await browser.newPage();
  const faults: string[] = [];
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("request", (asked) => {
    if (!asked.url().startsWith(inspector.pageUrl) && !asked.url().startsWith("data:"))
      faults.push(asked.url());
  });
  await page.goto(inspector.pageUrl);
  return { page, faults };
}

/** Asks the inspector's own server, with headers as a browser or a rebound name sends them. */
async function ask(url: string, headers: Record<string, string>, method = "GET") {
  const sent = request(url, { method, headers });
  sent.end(method === "GET" ? undefined : "{}");
  const answer = await new Promise<import("node:http").IncomingMessage>((resolve) =>
    sent.once("response", resolve),
  );
  const body = url.endsWith("/events") ? "" : await text(answer);
  sent.destroy();
  return { status: answer.statusCode, body, headers: answer.headers };
}

describe("the inspector's page", () => {
  it("shows cycles live, with their sequence and the failed check, and passes axe", async () => {
    const inspector = await shop.inspect();
    const { page, faults } = await openPage(inspector);
    await page.getByText("No 402 has passed yet").waitFor();
    expect(await page.getByLabel("Command: ").textContent()).toBe(`curl -i ${inspector.proxyUrl}/`);
    expect(await findFaults(page)).toEqual([]);
    await (await fetch(`${inspector.proxyUrl}/weather?live`)).arrayBuffer();
    await page.getByRole("button", { name: /\/weather\?live.*offered 402/ }).waitFor();
    expect(faults).toEqual([]);
    await page.close();

    const busy = await inspectBoth();
    const both = await openPage(busy);
    await both.page.getByRole("button", { name: /refused 402/ }).click();
    await both.page.getByText("Failed check: domain name.").waitFor();
    const steps = both.page.locator(".sequence li");
    expect(await steps.locator(".label b").allTextContents()).toEqual([
      "GET",
      "402 Payment Required",
      "GET with a payment",
      "402 Payment Required",
    ]);
    expect(await both.page.locator("tr.differs").textContent()).toContain("USDC");
    for (const summary of await both.page.locator(".leg summary").all()) await summary.click();
    expect(await findFaults(both.page)).toEqual([]);
    const wide = both.page.viewportSize() ?? { width: 1280, height: 800 };
    await both.page.setViewportSize({ width: 360, height: 780 });
    // An address in a table has one line, however narrow the screen is.
    const { height = 99 } = (await both.page.locator("td .copy").first().boundingBox()) ?? {};
    expect(height).toBeLessThan(40);
    await both.page.setViewportSize(wide);
    if (process.env.COINSLOT_PICTURES) {
      await takePictures(both.page, { folder: process.env.COINSLOT_PICTURES, name: "inspector" });
    }
    await both.page.keyboard.press("/");
    await both.page.keyboard.type("?paid");
    await both.page.getByRole("button", { name: /\/weather\?paid.*paid 200/ }).click();
    await both.page.locator("h2.target", { hasText: "?paid" }).waitFor();
    expect(await steps.locator(".label b").allTextContents()).toEqual([
      "GET",
      "402 Payment Required",
      "GET with a payment",
      "settles",
      "200 OK",
    ]);
    await both.page
      .getByText(/^\d+ gas$/)
      .first()
      .waitFor();
    if (process.env.COINSLOT_PICTURES) {
      await takePictures(both.page, {
        folder: process.env.COINSLOT_PICTURES,
        name: "inspector-paid",
      });
    }
    expect(both.faults).toEqual([]);
    await both.page.close();
  });

  it("replays a refused payment with its difference, and opens a saved recording", async () => {
    const inspector = await inspectBoth();
    const { page, faults } = await openPage(inspector);
    await page.getByRole("button", { name: /refused 402/ }).click();
    await page.getByRole("button", { name: "Replay on the local chain" }).click();
    await page.getByText("paid answer: 402, as recorded", { exact: true }).waitFor();
    await page.getByText("reason: invalid_exact_evm_signature, as recorded").waitFor();
    const file = {
      name: "shared.json",
      mimeType: "application/json",
      buffer: Buffer.from(inspector.record()),
    };
    await page.getByLabel("Open recording").setInputFiles(file);
    await page.getByText("are from shared.json").waitFor();
    await page.getByRole("button", { name: /\?paid.*paid 200/ }).click();
    await page.getByRole("button", { name: "Replay on the local chain" }).click();
    await page.getByText("receipt: success, as recorded").waitFor();
    expect(faults).toEqual([]);
    const bad = { name: "bad.json", mimeType: "application/json", buffer: Buffer.from("{}") };
    await page.getByLabel("Open recording").setInputFiles(bad);
    await page.getByText("The file is no recording of the inspector.").waitFor();
    await page.close();
  });

  it("runs no script of a URL, header or body", async () => {
    const script = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>';
    const inspector = await shop.inspect();
    const message = Buffer.from(JSON.stringify({ [script]: script, x402Version: 2 })).toString(
      "base64",
    );
    const target = `/echo?${encodeURIComponent("a")}=<script>window.hit=1</script>`;
    const sent = request(`${inspector.proxyUrl}${target}`, {
      method: "POST",
      headers: {
        "X-Script": script,
        [headerName.paymentSignature]: message,
        "Content-Type": "text/html",
      },
    });
    sent.end(script);
    const answer = await new Promise<import("node:http").IncomingMessage>((resolve) =>
      sent.once("response", resolve),
    );
    await text(answer);
    const { page, faults } = await openPage(inspector);
    await page.getByRole("button", { name: /\/echo/ }).click();
    await page.locator(".leg").waitFor();
    for (const summary of await page.locator(".leg summary").all()) await summary.click();
    expect(await page.locator(".leg").textContent()).toContain("onerror");
    expect(await page.evaluate("window.hit")).toBeUndefined();
    expect(faults).toEqual([]);
    await page.close();
  });
});

describe("the inspector's server", () => {
  it("answers no other name, origin or site, and is not in the proxied origin", async () => {
    const inspector = await shop.inspect();
    const { pageUrl, proxyUrl } = inspector;
    const api = `${pageUrl}api/facts`;
    const { port } = new URL(pageUrl);
    expect((await ask(api, {})).status).toBe(200);
    expect(
      (await ask(api, { host: `localhost:${port}`, "sec-fetch-site": "same-origin" })).status,
    ).toBe(200);
    const foreign: Record<string, string>[] = [
      { host: `rebound.example:${port}` },
      { host: "127.0.0.1" },
      { origin: "https://evil.example" },
      { origin: proxyUrl, "sec-fetch-site": "same-site" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" },
      { "sec-fetch-site": "same-site", "sec-fetch-dest": "document" },
    ];
    for (const headers of foreign) {
      expect([headers, (await ask(api, headers)).status]).toEqual([headers, 403]);
      expect((await ask(`${pageUrl}api/events`, headers)).status).toBe(403);
    }
    const own = { "content-type": "application/json" };
    expect((await ask(`${pageUrl}api/open`, own, "POST")).status).toBe(403);
    expect(
      (await ask(`${pageUrl}api/open`, { ...own, "x-coinslot-inspector": "1" }, "POST")).status,
    ).toBe(400);
    expect(
      (await ask(pageUrl, { "sec-fetch-site": "cross-site", "sec-fetch-dest": "document" })).status,
    ).toBe(200);
    expect((await ask(`${proxyUrl}/api/facts`, {})).status).toBe(404);
    const { headers } = await ask(pageUrl, {});
    expect(headers["content-security-policy"]).toMatch(
      /default-src 'none'.*frame-ancestors 'none'/,
    );
    expect(headers["access-control-allow-origin"]).toBeUndefined();
  });

  it("refuses a replay where no local chain was given", async () => {
    const inspector = await shop.inspect();
    const headers = { "content-type": "application/json", "x-coinslot-inspector": "1" };
    expect((await ask(`${inspector.pageUrl}api/replay`, headers, "POST")).status).toBe(404);
  });
});
