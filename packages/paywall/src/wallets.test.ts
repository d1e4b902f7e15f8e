import type { WalletOptions } from "@coinslot/pages/testing";
import type { Page } from "playwright-core";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { openWorld, type Visit, type World } from "./testing/open-world.ts";

type WalletRequest = Parameters<NonNullable<WalletOptions["intercept"]>>[0];

let world: World;
const opened: Visit[] = [];

beforeAll(async () => {
  world = await openWorld();
});

afterEach(async () => {
  world.runs.clear();
  await Promise.all(opened.splice(0).map((visit) => visit.close()));
});

afterAll(async () => {
  await world?.close();
});

async function visit(...options: Parameters<World["visit"]>): Promise<Visit> {
  const made = await world.visit(...options);
  opened.push(made);
  await made.page.goto(`${world.url}/json`);
  return made;
}

function payButton(page: Page) {
  return page.getByRole("button", { name: "Pay 0.001 USDT0 with Test Wallet" });
}

const isSigning = ({ method }: { method: string }) => method === "eth_signTypedData_v4";
const otherChain = 988;

describe("a wallet that does not pay", () => {
  it("may refuse to sign, and then sign the same draft", async () => {
    let isWilling = false;
    const { page, wallet, payments } = await visit({
      intercept(request) {
        if (isSigning(request) && !isWilling) throw { code: 4001, message: "User rejected." };
      },
    });
    await payButton(page).click();
    await page.getByText("Test Wallet did not sign. No money has moved.").waitFor();
    isWilling = true;
    await payButton(page).click();
    await page.getByText("Paid 0.001 USDT0").waitFor();
    const drafts = wallet?.requests.filter(isSigning).map(({ params }) => params[1]);
    expect(drafts).toHaveLength(2);
    expect(drafts?.[1]).toBe(drafts?.[0]);
    expect(await payments()).toBe(1);
  });

  it("may never answer: it is left by a click, and its late signature pays nothing", async () => {
    let sign: (signature: unknown) => void = () => undefined;
    let asked = 0;
    const { page, payments } = await visit({
      intercept(request) {
        if (!isSigning(request)) return undefined;
        asked += 1;
        return new Promise((resolve) => {
          sign = resolve;
        });
      },
    });
    await payButton(page).click();
    await page.getByText("Confirm the payment in Test Wallet").waitFor();
    await expect.poll(() => asked).toBe(1);
    await page.getByRole("button", { name: "Cancel" }).click();
    await payButton(page).waitFor();
    sign(`0x${"11".repeat(65)}`);
    expect(await page.evaluate("Object.values(sessionStorage).join()")).not.toContain("signature");
    expect([await payments(), world.runs.size]).toEqual([0, 0]);
  });

  it("may have too little, which is said before it is asked to sign", async () => {
    const { page, wallet } = await visit({ funds: 500n });
    await payButton(page).click();
    await page.getByText("The wallet has 0.0005 USDT0, and the price is 0.001 USDT0.").waitFor();
    expect(wallet?.requests.filter(isSigning)).toEqual([]);
  });

  it("may sign something else: the seller refuses it, and nothing is signed anew", async () => {
    const stranger = privateKeyToAccount(`0x${"12".repeat(32)}`);
    const { page, payments } = await visit({
      intercept: (request) =>
        isSigning(request) ? stranger.signMessage({ message: "x" }) : undefined,
    });
    await payButton(page).click();
    await page.getByText("The wallet signed something else").waitFor();
    await page.getByText("No money has moved.").waitFor();
    expect(await payButton(page).isVisible()).toBe(false);
    expect([await payments(), world.runs.size]).toEqual([0, 0]);
  });

  it.each([
    ["no signature", isSigning, "0x"],
    [
      "an object in place of accounts",
      ({ method }: { method: string }) => method === "eth_requestAccounts",
      {},
    ],
  ])("may answer with %s", async (_name, concerns, answer) => {
    const { page } = await visit({
      intercept: (request) => (concerns(request) ? answer : undefined),
    });
    await payButton(page).click();
    await page.getByText("Test Wallet failed:").waitFor();
    expect(await payButton(page).isVisible()).toBe(true);
  });
});

describe("a signed payment that the seller has refused", () => {
  const stranger = privateKeyToAccount(`0x${"13".repeat(32)}`);
  const isState = ({ params: [call] }: { params: readonly unknown[] }) =>
    JSON.stringify(call).includes("0xe94a0102");

  /** A wallet that signs something else, once, and whose chain is that of the test. */
  async function refused(
    answerOf: (request: WalletRequest) => unknown,
    options: { chainIds?: readonly number[]; before?: (made: Visit) => void } = {},
  ) {
    let count = 0;
    const { before, ...others } = options;
    const made = await visit({
      ...others,
      intercept(request) {
        if (isSigning(request)) count += 1;
        if (isSigning(request) && count === 1) return stranger.signMessage({ message: "x" });
        return answerOf(request);
      },
    });
    before?.(made);
    await payButton(made.page).click();
    await made.page.getByText("The wallet signed something else").waitFor();
    await made.page.getByRole("button", { name: "Check with the wallet" }).click();
    return made;
  }

  it("gives way to a new one once a later block shows it expired unused", async () => {
    const later = { timestamp: "0xffffffff" };
    const { page, payments } = await refused(({ method }) =>
      method === "eth_getBlockByNumber" ? later : undefined,
    );
    await page.getByText("has expired unused. No money has moved.").waitFor();
    await payButton(page).click();
    await page.getByText("Paid 0.001 USDT0").waitFor();
    expect(await payments()).toBe(1);
  });

  it("stands while it has not expired, and while the chain is not known", async () => {
    for (const answer of [undefined, null, {}]) {
      const { page } = await refused(({ method }) =>
        method === "eth_getBlockByNumber" ? answer : undefined,
      );
      await page.getByText("Nothing is signed a second time until it is.").waitFor();
      expect(await payButton(page).isVisible()).toBe(false);
    }
  });

  it("stands where the wallet has left its chain in the middle of the answer", async () => {
    let leave: () => Promise<void> = async () => undefined;
    const { page, wallet } = await refused(
      async ({ method }) => {
        if (method !== "eth_getBlockByNumber") return undefined;
        await leave();
        return { timestamp: "0xffffffff" };
      },
      {
        chainIds: [world.devnet.chainId, otherChain],
        before: (made) => {
          leave = async () => made.wallet?.selectChain(otherChain);
        },
      },
    );
    await page.getByText("Nothing is signed a second time until it is.").waitFor();
    expect(await payButton(page).isVisible()).toBe(false);
    expect(wallet?.requests.filter(isSigning)).toHaveLength(1);
  });

  it("is named as money that moved once its nonce is used", async () => {
    const { page } = await refused((request) =>
      request.method === "eth_call" && isState(request) ? `0x${"1".padStart(64, "0")}` : undefined,
    );
    await page.getByText("The money has moved.").waitFor();
    await page.getByRole("button", { name: "Buy again" }).waitFor();
  });
});

describe("a wallet on another chain", () => {
  it("is asked for the chain of the offer", async () => {
    const { page, wallet, payments } = await visit({
      chainIds: [otherChain, world.devnet.chainId],
    });
    await payButton(page).click();
    await page.getByText("Paid 0.001 USDT0").waitFor();
    expect(wallet?.requests.map(({ method }) => method)).toContain("wallet_switchEthereumChain");
    expect(await payments()).toBe(1);
  });

  it("gets the chain's facts where it does not know it", async () => {
    let isAdded = false;
    const { page, wallet } = await visit({
      chainIds: [otherChain, world.devnet.chainId],
      intercept({ method }) {
        if (method === "wallet_switchEthereumChain" && !isAdded) {
          throw { code: 4902, message: "Unrecognized chain ID." };
        }
        if (method === "wallet_addEthereumChain") isAdded = true;
      },
    });
    await payButton(page).click();
    await page.getByText("Paid 0.001 USDT0").waitFor();
    const added = wallet?.requests.find(({ method }) => method === "wallet_addEthereumChain");
    expect(added?.params).toEqual([
      {
        chainId: "0x2611",
        chainName: "Plasma",
        nativeCurrency: { name: "Plasma", symbol: "XPL", decimals: 18 },
        rpcUrls: ["https://rpc.plasma.to"],
        blockExplorerUrls: ["https://plasmascan.to"],
      },
    ]);
  });

  it("may say that it has switched, and stay: nothing is signed", async () => {
    const { page, wallet } = await visit({
      chainIds: [otherChain],
      intercept: ({ method }) => (method === "wallet_switchEthereumChain" ? null : undefined),
    });
    await payButton(page).click();
    await page.getByText("Test Wallet is not on Plasma. No money has moved.").waitFor();
    expect(wallet?.requests.filter(isSigning)).toEqual([]);
  });

  it("may lie about its chain: what it signs is for the offer's chain alone", async () => {
    const { page, payments } = await visit({
      chainIds: [otherChain],
      intercept: ({ method }) =>
        method === "eth_chainId" ? `0x${world.devnet.chainId.toString(16)}` : undefined,
    });
    await payButton(page).click();
    await page.getByText("Paid 0.001 USDT0").waitFor();
    expect(await payments()).toBe(1);
  });

  it("may switch in the middle: nothing is signed on another chain", async () => {
    let change: () => Promise<void> = async () => undefined;
    const made = await visit({
      chainIds: [world.devnet.chainId, otherChain],
      async intercept({ method }) {
        if (method === "eth_call") await change();
        return undefined;
      },
    });
    const { page, wallet, payments } = made;
    change = async () => wallet?.selectChain(otherChain);
    await payButton(page).click();
    await page.getByText("Test Wallet is not on Plasma. No money has moved.").waitFor();
    expect(wallet?.requests.filter(isSigning)).toEqual([]);
    change = async () => undefined;
    await payButton(page).click();
    await page.getByText("Paid 0.001 USDT0").waitFor();
    expect(await payments()).toBe(1);
  });
});
