import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import type { BrowserContext } from "playwright-core";
import { type Hex, hexToBigInt, isHex, numberToHex } from "viem";
import type { PrivateKeyAccount } from "viem/accounts";
import * as z from "zod";

/** A request of a page to its wallet, as in EIP-1193. */
export interface WalletRequest {
  readonly method: string;
  readonly params: readonly unknown[];
}

export interface WalletOptions {
  readonly account: PrivateKeyAccount;
  /** URL of a node by chain id. The first chain is the selected one. */
  readonly nodes: Readonly<Record<number, string>>;
  /** Default "Test Wallet". */
  readonly name?: string;
  /**
   * Asked before the wallet itself, for a wallet that lies, refuses or never answers. Its result is
   * the answer, `undefined` leaves the wallet its own; a thrown `{ code, message }` is the error.
   */
  readonly intercept?: (request: WalletRequest) => unknown;
}

export interface TestWallet {
  /** Methods asked for, in their order. */
  readonly requests: readonly WalletRequest[];
  /** Selects a chain as its user would, and tells all pages. */
  selectChain(chainId: number): Promise<void>;
}

const typedData = z.object({
  domain: z.record(z.string(), z.unknown()),
  types: z.record(z.string(), z.array(z.object({ name: z.string(), type: z.string() }))),
  primaryType: z.string(),
  message: z.record(z.string(), z.unknown()),
});
const chainParameter = z.object({ chainId: z.string().refine((value) => isHex(value)) });
const requestSchema = z.object({
  method: z.string(),
  params: z.array(z.unknown()).default([]),
});
const walletError = z.object({ code: z.number(), message: z.string() });
const nodeAnswer = z.object({ result: z.unknown().optional(), error: walletError.optional() });

/** As text: a compiled function may call helpers that a page lacks. */
const announceWallet = readFileSync(new URL("announce-wallet.js", import.meta.url), "utf8").replace(
  /^export /m,
  "",
);

/** Error codes of EIP-1193 and EIP-3326. */
const unsupportedMethod = 4200;
const unknownChain = 4902;

/**
 * Gives every page of a browser context a wallet, announced by EIP-6963, that signs with a key.
 * Reads go to a node, so that the page itself asks nobody. Call it before a page is opened.
 */
export async function addWallet(
  context: BrowserContext,
  { account, nodes, name = "Test Wallet", intercept }: WalletOptions,
): Promise<TestWallet> {
  const requests: WalletRequest[] = [];
  const chains = new Map(Object.entries(nodes).map(([id, url]) => [Number(id), url]));
  let [selected = 0] = chains.keys();

  async function selectChain(chainId: number): Promise<void> {
    selected = chainId;
    const told = JSON.stringify(numberToHex(chainId));
    const script = `globalThis.coinslotTestWallet?.emit("chainChanged", ${told})`;
    await Promise.all(context.pages().map((page) => page.evaluate(script)));
  }

  async function answer({ method, params }: WalletRequest): Promise<unknown> {
    switch (method) {
      case "eth_requestAccounts":
      case "eth_accounts":
        return [account.address];
      case "eth_chainId":
        return numberToHex(selected);
      case "wallet_addEthereumChain":
      case "wallet_switchEthereumChain": {
        const chainId = Number(hexToBigInt(chainParameter.parse(params[0]).chainId as Hex));
        if (!chains.has(chainId)) throw { code: unknownChain, message: "Unrecognized chain ID." };
        if (chainId !== selected) await selectChain(chainId);
        return null;
      }
      case "eth_signTypedData_v4": {
        const { types, ...rest } = typedData.parse(JSON.parse(z.string().parse(params[1])));
        const { EIP712Domain: _domain, ...own } = types;
        return account.signTypedData({ ...rest, types: own });
      }
      default:
        return askNode({ method, params }, chains.get(selected));
    }
  }

  await context.exposeFunction("coinslotTestWalletAnswer", async (given: unknown) => {
    const request = requestSchema.parse(given);
    requests.push(request);
    try {
      const intercepted = await intercept?.(request);
      return { result: intercepted === undefined ? await answer(request) : intercepted };
    } catch (error) {
      const known = walletError.safeParse(error);
      return { error: known.success ? known.data : { code: -32603, message: String(error) } };
    }
  });
  const info = { name, uuid: randomUUID() };
  await context.addInitScript({
    content: `${announceWallet}; announceWallet(${JSON.stringify(info)})`,
  });
  return { requests, selectChain };
}

async function askNode(request: WalletRequest, url: string | undefined): Promise<unknown> {
  if (url === undefined || !request.method.startsWith("eth_")) {
    throw { code: unsupportedMethod, message: `The wallet does not support ${request.method}.` };
  }
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...request }),
  });
  const { result, error } = nodeAnswer.parse(await response.json());
  if (error !== undefined) throw error;
  return result;
}
