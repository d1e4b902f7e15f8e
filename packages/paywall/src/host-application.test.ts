import { type RequestListener, request } from "node:http";
import { type Listening, listen } from "@coinslot/devnet";
import compression from "compression";
import helmet from "helmet";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { openWorld, type Visit, type World } from "./testing/open-world.ts";

const opened: Visit[] = [];
let world: World;
let proxy: Listening;

/** A seller below a path, in an application with the usual middleware, behind a proxy. */
beforeAll(async () => {
  world = await openWorld(
    {},
    { before: (app) => app.use(helmet(), compression({ threshold: 0 })), mount: "/api" },
  );
  proxy = await listen(createPathProxy(new URL(world.url)));
});

afterEach(async () => {
  world.runs.clear();
  await Promise.all(opened.splice(0).map((visit) => visit.close()));
});

afterAll(async () => {
  await proxy?.close();
  await world?.close();
});

/** Cuts `/shop` off, or writes `/other` as `/api`, and keeps the browser's `Host`. */
function createPathProxy({ port }: URL): RequestListener {
  return (asked, answer) => {
    const path = (asked.url ?? "/").replace(/^\/shop\//, "/").replace(/^\/other\//, "/api/");
    const { method, headers } = asked;
    const onward = request({ host: "127.0.0.1", port, path, method, headers }, (given) => {
      answer.writeHead(given.statusCode ?? 502, given.headers);
      given.pipe(answer);
    });
    onward.on("error", () => answer.destroy());
    asked.pipe(onward);
  };
}

async function visit(): Promise<Visit> {
  const made = await world.visit();
  opened.push(made);
  return made;
}

async function pay(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.getByRole("button", { name: "Pay 0.001 USDT0 with Test Wallet" }).click();
}

describe("a seller in a sub-application, behind helmet and compression", () => {
  it("sells JSON on a page whose own policy holds", async () => {
    const { page, payments } = await visit();
    const faults: string[] = [];
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => {
      if (message.text().includes("Content Security Policy")) faults.push(message.text());
    });
    await pay(page, `${world.url}/json`);
    await page.getByText("Paid 0.001 USDT0").waitFor();
    await page.getByText('"forecast": "<b>sun</b>"').waitFor();
    expect([await payments(), world.runs.get("/json"), faults]).toEqual([1, 1, []]);
  });

  it("sells a page, which a navigation opens with the application's own policy", async () => {
    const { page, payments } = await visit();
    const policies: (string | undefined)[] = [];
    page.on("response", (response) => {
      if (response.request().isNavigationRequest()) {
        policies.push(response.headers()["content-security-policy"]);
      }
    });
    await pay(page, `${world.url}/page?of=today`);
    await page.getByRole("heading", { name: "Sold page" }).waitFor();
    expect(page.url()).toBe(`${world.url}/page?of=today`);
    expect(policies).toEqual([
      expect.stringContaining("script-src 'nonce-"),
      expect.stringContaining("upgrade-insecure-requests"),
    ]);
    expect([await payments(), world.runs.get("/page")]).toEqual([1, 1]);
  });

  it("opens a sold page behind a proxy that cuts a prefix off", async () => {
    const { page, payments } = await visit();
    await pay(page, `${proxy.url}/shop/api/page`);
    await page.getByRole("heading", { name: "Sold page" }).waitFor();
    expect(page.url()).toBe(`${proxy.url}/shop/api/page`);
    expect(await page.locator("iframe").count()).toBe(0);
    expect([await payments(), world.runs.get("/page")]).toEqual([1, 1]);
  });

  it("shows a sold page behind a proxy that writes the path anew, for which no cookie comes", async () => {
    const { page, payments } = await visit();
    await pay(page, `${proxy.url}/other/page`);
    await page.frameLocator("iframe").getByRole("heading", { name: "Sold page" }).waitFor();
    expect([await payments(), world.runs.get("/page")]).toEqual([1, 1]);
  });
});

describe("a sold page that is not kept", () => {
  it.each(["/large", "/upfront"])(
    "is shown on the paywall from %s, inert, and offered as a file",
    async (path) => {
      const { page, payments } = await visit();
      await pay(page, `${world.url}${path}`);
      await page.getByText("Paid 0.001 USDT0").waitFor();
      const sold = page.frameLocator("iframe");
      await sold.getByRole("heading", { name: "Sold as it is" }).waitFor();
      expect(await sold.getByText("ran", { exact: true }).count()).toBe(0);
      expect(await page.title()).not.toBe("ran");
      expect(await page.getByRole("link", { name: "Save as a file" }).isVisible()).toBe(true);
      expect([await payments(), world.runs.get(path)]).toEqual([1, 1]);
    },
  );
});
