import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Devnet, type Listening, listen, startDevnet } from "@coinslot/devnet";
import type { Browser } from "playwright-core";
import { verifyTypedData } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addWallet } from "./add-wallet.ts";
import { findFaults } from "./find-faults.ts";
import { openBrowser } from "./open-browser.ts";
import { takePictures } from "./take-pictures.ts";

const tokens = readFileSync(new URL("../tokens.css", import.meta.url), "utf8");
const good = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>A page</title>
<style>${tokens}</style><main><h1>A page</h1>
<p>Ink</p><p style="color:var(--soft)">Soft</p><p style="color:var(--accent)">Accent</p>
${["good", "warn", "bad", "accent"]
  .map((name) => `<p style="color:var(--${name});background:var(--${name}-ground)">${name}</p>`)
  .join("")}
<p style="background:var(--sunken);color:var(--soft)">Sunken</p>
<p style="background:var(--hover);color:var(--soft)">Hover</p>
<p style="background:var(--accent);color:var(--on-accent)">Button</p></main></html>`;
const bad = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>A page</title>
<main><h1>A page</h1><div style="width:700px;color:#ccc;background:#fff">Faint and wide</div><img src="data:,"></main></html>`;

let browser: Browser;
let site: Listening;
let devnet: Devnet;

beforeAll(async () => {
  site = await listen((request, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.end(request.url === "/bad" ? bad : good);
  });
  [browser, devnet] = await Promise.all([openBrowser(), startDevnet()]);
});

afterAll(async () => {
  await Promise.all([browser?.close(), devnet?.stop(), site?.close()]);
});

describe("the browser kit", () => {
  it("finds no fault in the design tokens, light or dark", async () => {
    const page = await browser.newPage();
    await page.goto(site.url);
    expect(await findFaults(page)).toEqual([]);
    await page.close();
  });

  it("finds faint text, an image without a text, and a page that is too wide", async () => {
    const page = await browser.newPage();
    await page.goto(`${site.url}/bad`);
    const faults = (await findFaults(page)).join("\n");
    expect(faults).toContain("light: color-contrast");
    expect(faults).toContain("light: image-alt");
    expect(faults).toContain("phone: 7");
    await page.close();
  });

  it("takes pictures of a page in three widths, light and dark", async () => {
    const folder = mkdtempSync(join(tmpdir(), "pictures-"));
    const page = await browser.newPage();
    await page.goto(site.url);
    const files = await takePictures(page, { folder, name: "tokens" });
    expect(files).toHaveLength(6);
    for (const file of files) expect(existsSync(file)).toBe(true);
    await page.close();
    rmSync(folder, { recursive: true });
  });

  it("announces a wallet that signs typed data with its key and asks a node", async () => {
    const account = privateKeyToAccount(generatePrivateKey());
    const context = await browser.newContext();
    const wallet = await addWallet(context, {
      account,
      nodes: { [devnet.chainId]: devnet.rpcUrl },
      intercept: ({ method }) => {
        if (method === "personal_sign") throw { code: 4001, message: "User rejected." };
      },
    });
    const page = await context.newPage();
    await page.goto(site.url);
    const data = {
      domain: { name: "USDC", chainId: devnet.chainId },
      types: { Transfer: [{ name: "value", type: "uint256" }] },
      primaryType: "Transfer",
      message: { value: "10000" },
    } as const;
    const answers = await page.evaluate(
      `new Promise((resolve) => {
        addEventListener("eip6963:announceProvider", async ({ detail: { info, provider } }) => {
          const ask = (method, ...params) => provider.request({ method, params });
          const [address] = await ask("eth_requestAccounts");
          resolve({
            name: info.name,
            address,
            chain: await ask("eth_chainId"),
            block: await ask("eth_blockNumber"),
            refused: await ask("personal_sign", "0x", address).catch(({ code }) => code),
            unknown: await ask("wallet_switchEthereumChain", { chainId: "0x1" }).catch(({ code }) => code),
            signature: await ask("eth_signTypedData_v4", address, ${JSON.stringify(JSON.stringify(data))}),
          });
        });
        dispatchEvent(new Event("eip6963:requestProvider"));
      })`,
    );
    expect(answers).toMatchObject({
      name: "Test Wallet",
      address: account.address,
      chain: `0x${devnet.chainId.toString(16)}`,
      block: expect.stringMatching(/^0x/),
      refused: 4001,
      unknown: 4902,
    });
    const { signature } = answers as { signature: `0x${string}` };
    const message = { value: 10_000n };
    const isSigned = await verifyTypedData({
      ...data,
      message,
      address: account.address,
      signature,
    });
    expect(isSigned).toBe(true);
    expect(wallet.requests.map(({ method }) => method)).toContain("eth_signTypedData_v4");
    await context.close();
  });
});
