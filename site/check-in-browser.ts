// Reads the built site in a browser: on a phone without JavaScript, and without a network. npm run
// site:browser [-- folder for pictures]
import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { openBrowser } from "@coinslot/pages/testing";
import type { Browser } from "playwright-core";
import { root } from "./page.ts";
import { sitePath } from "./site-path.ts";

const [pictures] = process.argv.slice(2);
const output = join(root, "site/dist");
const phone = { width: 390, height: 844 };
const paths: string[] = JSON.parse(readFileSync(join(root, "site/.pages/pages.json"), "utf8")).map(
  ({ path }: { path: string }) => path.replace(/\.md$/, ".html"),
);
const types: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? "/", "http://localhost");
  const file = decodeURI(pathname).slice(sitePath().length) || "index.html";
  try {
    const body = readFileSync(join(output, file));
    response.setHeader("content-type", types[extname(file)] ?? "text/plain; charset=utf-8");
    response.end(body);
  } catch {
    response.writeHead(404).end();
  }
}).listen(0, "127.0.0.1");
await new Promise((resolve) => server.once("listening", resolve));
const { port } = server.address() as AddressInfo;
const address = `http://127.0.0.1:${port}${sitePath()}`;
if (pictures !== undefined) mkdirSync(pictures, { recursive: true });

const browser = await openBrowser();
const faults: string[] = [];
try {
  await readOnPhone(browser);
  await searchOffline(browser);
} finally {
  await browser.close();
  server.close();
}
for (const fault of faults) console.error(fault);
console.log(`${paths.length} pages read in a browser, ${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);

/**
 * Every page, without JavaScript: its heading is seen, nothing is wider than the screen, all pages
 * are linked.
 */
async function readOnPhone(browser: Browser): Promise<void> {
  const context = await browser.newContext({ viewport: phone, javaScriptEnabled: false });
  const page = await context.newPage();
  for (const path of paths) {
    await page.goto(`${address}${path}`);
    if (!(await page.locator("main h1").first().isVisible())) faults.push(`${path}: no heading`);
    const width = await page.evaluate<number>("document.documentElement.scrollWidth");
    if (width > phone.width) faults.push(`${path}: ${width} pixels wide on a phone`);
    const listed = await page.locator("noscript nav a, nav[aria-label='All pages'] a").count();
    if (listed !== paths.length) faults.push(`${path}: ${listed} pages listed without JavaScript`);
    if (pictures !== undefined) {
      const name = path.replaceAll("/", "-").replace(".html", ".png");
      await page.screenshot({ path: join(pictures, name) });
    }
  }
  await context.close();
}

/** A search finds pages, and no request leaves for another host. */
async function searchOffline(browser: Browser): Promise<void> {
  const context = await browser.newContext({ viewport: phone });
  const page = await context.newPage();
  await page.route("**/*", (route) => {
    const url = route.request().url();
    if (url.startsWith(address)) return route.continue();
    faults.push(`The page asked for ${url}`);
    return route.abort();
  });
  await page.goto(address);
  await page.locator("#local-search button").click();
  await page.locator(".VPLocalSearchBox input").fill("paymentMiddleware");
  const results = page.locator(".VPLocalSearchBox .result");
  await results.first().waitFor();
  if (pictures !== undefined) await page.screenshot({ path: join(pictures, "search.png") });
  await results.first().click();
  await page.waitForURL((url) => url.pathname !== sitePath());
  await context.close();
}
