import type { PayableWay } from "../src/page-data.ts";
import { codeOf, type Provider } from "./provider.ts";

/** A block that replaces the head may be earlier by this much, and hold the payment. */
const reorganisationSeconds = 12;

/** Asks the wallet for the chain of the offer; adds it where the wallet does not know it. */
export async function selectChain(provider: Provider, way: PayableWay): Promise<boolean> {
  if (await isSelected(provider, way)) return true;
  const chainId = hexOf(way.chainId);
  try {
    await provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId }] });
  } catch (error) {
    if (codeOf(error) === 4001 || way.chain === undefined) throw error;
    await provider.request({
      method: "wallet_addEthereumChain",
      params: [{ chainId, ...way.chain }],
    });
    // A wallet may add a chain without selecting it.
    if (!(await isSelected(provider, way))) {
      await provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId }] });
    }
  }
  return isSelected(provider, way);
}

/** Returns whether the wallet is on the chain of the offer, in its own words. */
export async function isSelected(provider: Provider, { chainId }: PayableWay): Promise<boolean> {
  return Number(await provider.request({ method: "eth_chainId" })) === chainId;
}

/** Balance of the token; `undefined` where the wallet's node does not know it. */
export async function readBalance(
  provider: Provider,
  way: PayableWay,
  account: string,
): Promise<bigint | undefined> {
  return ask(provider, way, `0x70a08231${wordOf(account)}`);
}

/** The chain's word on an authorization, or `undefined` where the wallet's node does not answer. */
export async function readFate(
  provider: Provider,
  way: PayableWay,
  { from, nonce, validBefore }: { from: string; nonce: string; validBefore: string },
): Promise<"used" | "expired" | "open" | undefined> {
  // The block first: what is unused at a later block was unused at this one.
  const block = await provider.request({
    method: "eth_getBlockByNumber",
    params: ["latest", false],
  });
  const time = Number(Object(block).timestamp);
  const used = await ask(provider, way, `0xe94a0102${wordOf(from)}${nonce.slice(2)}`);
  if (used === undefined || !(time > 0)) return undefined;
  if (used === 1n) return "used";
  return time >= Number(validBefore) + reorganisationSeconds ? "expired" : "open";
}

async function ask(provider: Provider, way: PayableWay, data: string): Promise<bigint | undefined> {
  try {
    const params = [{ to: way.accepted.asset, data }, "latest"];
    const answer = await provider.request({ method: "eth_call", params });
    return typeof answer === "string" && /^0x[0-9a-f]{64}$/i.test(answer)
      ? BigInt(answer)
      : undefined;
  } catch {
    return undefined;
  }
}

function wordOf(address: string): string {
  return address.slice(2).toLowerCase().padStart(64, "0");
}

function hexOf(value: number): string {
  return `0x${value.toString(16)}`;
}
