/**
 * A wallet's provider (EIP-1193), as far as the page uses it. Its answers are not to be trusted.
 */
export interface Provider {
  request(call: { method: string; params?: readonly unknown[] }): Promise<unknown>;
}

/** A wallet that has announced itself (EIP-6963). */
export interface Wallet {
  id: string;
  name: string;
  /** A `data:` URL of an image, or empty. */
  icon: string;
  provider: Provider;
}

/** Finds wallets for as long as the page lives; each is reported once. */
export function findWallets(report: (wallet: Wallet) => void): void {
  const known = new Set<string>();
  addEventListener("eip6963:announceProvider", (event) => {
    const wallet = readWallet((event as CustomEvent<unknown>).detail);
    if (wallet === undefined || known.has(wallet.id)) return;
    known.add(wallet.id);
    report(wallet);
  });
  dispatchEvent(new Event("eip6963:requestProvider"));
}

function readWallet(detail: unknown): Wallet | undefined {
  const { info, provider } = Object(detail) as { info?: unknown; provider?: Provider };
  const { uuid, name, icon } = Object(info) as Record<string, unknown>;
  if (typeof uuid !== "string" || typeof name !== "string") return undefined;
  if (typeof provider?.request !== "function") return undefined;
  const isImage = typeof icon === "string" && icon.startsWith("data:image/");
  return { id: uuid, name: name.slice(0, 40), icon: isImage ? icon : "", provider };
}

/** The error code of a wallet (EIP-1193), which nests it at times. */
export function codeOf(error: unknown): number | undefined {
  const { code, data } = Object(error) as { code?: unknown; data?: unknown };
  if (typeof code === "number" && code !== -32603) return code;
  const { originalError } = Object(data) as { originalError?: unknown };
  return originalError === undefined ? undefined : codeOf(originalError);
}
