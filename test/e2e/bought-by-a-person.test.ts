import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startConsole } from "@coinslot/console";
import { type Devnet, listen, startDevnet, startSource } from "@coinslot/devnet";
import { paymentMiddleware } from "@coinslot/express";
import { createFacilitator, openLedgerReader } from "@coinslot/facilitator";
import { addWallet, openBrowser } from "@coinslot/pages/testing";
import { paywall } from "@coinslot/paywall";
import { eip3009Abi } from "@coinslot/protocol";
import express from "express";
import type { Browser, Page } from "playwright-core";
import { isHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { priceOfWeather, weatherPrice } from "../support/seller.ts";

const key = "console-key-".padEnd(40, "0");
const funds = 5n * priceOfWeather;
const buyer = privateKeyToAccount(generatePrivateKey());
const float = generatePrivateKey();

let devnet: Devnet;
let browser: Browser;
const closings: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  [devnet, browser] = await Promise.all([startDevnet(), openBrowser()]);
  await devnet.mint({ to: buyer.address, amount: funds });
  await devnet.mint({ to: privateKeyToAccount(float).address, amount: 1_000_000n });
});

afterAll(async () => {
  for (const close of closings.reverse()) await close();
  await Promise.all([browser?.close(), devnet?.stop()]);
});

/** A seller with a paywall, and its console. */
async function open() {
  const folder = await mkdtemp(join(tmpdir(), "coinslot-person-"));
  closings.push(() => rm(folder, { recursive: true }));
  const ledger = `sqlite:${join(folder, "ledger.db")}`;
  const { network, rpcUrl, accounts } = devnet;
  const facilitator = createFacilitator({
    networks: [{ network, rpcUrls: [rpcUrl], relayer: accounts.relayer, finalAfter: 2 }],
    ledger,
    refunds: { privateKey: float },
  });
  closings.push(() => facilitator.close());
  const routes = { "GET /weather": { accepts: weatherPrice(devnet), description: "Weather" } };
  const gate = paymentMiddleware(routes, facilitator, { paywall: paywall() });
  const app = express();
  app.use(gate);
  app.get("/weather", (_request, response) => void response.json({ forecast: "sun" }));
  await gate.ready();
  const shop = await listen(app);
  const console = await startConsole(facilitator, { port: 0, key, print: () => undefined });
  closings.push(shop.close, () => console.close());
  return { ledger, url: shop.url, consoleUrl: console.url };
}

function readBalance(): Promise<bigint> {
  return devnet.client.readContract({
    address: devnet.token,
    abi: eip3009Abi,
    functionName: "balanceOf",
    args: [buyer.address],
  });
}

async function readBooks(url: string) {
  const reader = await openLedgerReader({ url });
  const faults: unknown[] = [];
  const kinds: string[] = [];
  for await (const page of reader.books.check({ from: 0, before: Date.now() + 86_400_000 })) {
    faults.push(...page.faults);
    kinds.push(...page.transfers.map(({ kind }) => kind));
  }
  await reader.close();
  return { faults, kinds: kinds.toSorted() };
}

/** Pays on the paywall. Returns the transaction's hash. */
async function buy(page: Page, url: string, answer: string): Promise<string> {
  await page.goto(url);
  await page.getByRole("button", { name: "Pay 0.001 USDT0 with Test Wallet" }).click();
  await page.getByText(answer).waitFor();
  return (await page.getByRole("link", { name: /^0x/ }).getAttribute("title")) ?? "";
}

/** Finds the payment on a console that is signed in to, and gives all of it back. */
async function refund(page: Page, consoleUrl: string, transaction: string): Promise<void> {
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  await page.goto(`${consoleUrl}/payments?search=${transaction}`);
  await page.locator("tbody a").first().click();
  await page.getByRole("button", { name: "Refund", exact: true }).click();
  await page.getByRole("button", { name: "Refund 0.001 USDT0" }).click();
  await page.getByRole("heading", { name: "Refund begun" }).waitFor();
}

/** Output of `npm start`. */
async function start() {
  const folder = fileURLToPath(new URL("../../", import.meta.url));
  const env = { HOME: process.env.HOME ?? "", PAID_INDEXER_PORT: "0" };
  const program = startSource(["scripts/start.ts"], { folder, env });
  onTestFinished(program.kill);
  await program.waitFor(/Ctrl-C stops it\./);
  const linkUnder = (heading: string) =>
    new RegExp(`^${heading}: .*\n\n(http\\S+)$`, "m").exec(program.printed())?.[1] ?? "";
  return { program, linkUnder };
}

describe("a purchase by a person", () => {
  it("is paid on the paywall, found and refunded on the console, and agrees with the books", async () => {
    const { ledger, url, consoleUrl } = await open();
    const context = await browser.newContext();
    await addWallet(context, { account: buyer, nodes: { [devnet.chainId]: devnet.rpcUrl } });
    const page = await context.newPage();
    const transaction = await buy(page, `${url}/weather`, '"forecast": "sun"');
    expect(await readBalance()).toBe(funds - priceOfWeather);

    await page.goto(consoleUrl);
    await page.getByLabel("Key of the console").fill(key);
    await page.keyboard.press("Enter");
    await refund(page, consoleUrl, transaction);

    await expect
      .poll(async () => {
        await devnet.client.mine({ blocks: 3 });
        return readBalance();
      })
      .toBe(funds);
    await expect
      .poll(() => readBooks(ledger))
      .toEqual({ faults: [], kinds: ["payment", "refund"] });
    await context.close();
  });

  it("follows the links that npm start prints, whose Ctrl-C ends all of it", async () => {
    const { program, linkUnder } = await start();
    const said = program.printed();
    const found = (form: RegExp) => form.exec(said)?.[1] ?? "";
    const privateKey = found(/WALLET_PRIVATE_KEY=(\S+)/);
    if (!isHex(privateKey)) throw new Error("No key was printed.");
    const context = await browser.newContext();
    const nodes = { 9745: found(/COINSLOT_RPC_URL=(\S+)/) };
    await addWallet(context, { account: privateKeyToAccount(privateKey), nodes });
    const page = await context.newPage();
    const inspected = linkUnder("Paywall").replace(
      found(/^Selling .* at (http\S+),/m),
      found(/Ask (http\S+) in place/),
    );
    const transaction = await buy(page, inspected, '"tokenBalance"');

    await page.goto(linkUnder("Inspector"));
    await page.getByText("paid 200").first().waitFor();

    const link = linkUnder("Console");
    const consoleUrl = new URL(link).origin;
    await page.goto(link);
    await refund(page, consoleUrl, transaction);
    await page.goto(`${consoleUrl}/books`);
    await page.getByRole("cell", { name: "refund", exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Check the books" }).click();
    await page.getByText("No difference.").waitFor();
    await context.close();

    program.child.kill("SIGINT");
    expect({ code: await program.ended, said: program.printed() }).toEqual({
      code: 0,
      said: expect.stringMatching(/Stopped\.\n$/),
    });
    for (const heading of ["Paywall", "Console", "Inspector"]) {
      await expect(fetch(linkUnder(heading)), heading).rejects.toThrow("fetch failed");
    }
  });
});
