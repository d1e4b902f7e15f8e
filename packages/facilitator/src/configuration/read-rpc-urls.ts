import type { FacilitatorNetworkOptions } from "./facilitator-options.ts";

/** Reads the endpoints of a network. No problem repeats a URL: it may hold a key. */
export function readRpcUrls(options: FacilitatorNetworkOptions): {
  rpcUrls: string[];
  problems: string[];
} {
  const { rpcUrl, rpcUrls = [] } = options;
  const given = rpcUrl === undefined ? rpcUrls : [rpcUrl, ...rpcUrls];
  const isSet = (url: string | undefined): url is string => url !== undefined && url !== "";
  if (given.length === 0) return { rpcUrls: [], problems: ["rpcUrls is empty: name at least one"] };
  const problems = given.flatMap((url, index) => {
    const place = `RPC URL ${index + 1} of ${given.length}`;
    if (!isSet(url)) return [`${place} is not set`];
    if (isHttp(url) || isWebSocket(url)) return [];
    return [`${place} must be a URL that begins with http:// or https://, or wss://`];
  });
  if (problems.length === 0 && !given.some(isHttp)) {
    problems.push(
      "rpcUrls names WebSockets only: they announce new blocks, and requests need HTTP",
    );
  }
  return { rpcUrls: given.filter(isSet), problems };
}

function isHttp(url: string | undefined): boolean {
  return /^https?:$/.test(protocolOf(url));
}

function isWebSocket(url: string | undefined): boolean {
  return /^wss?:$/.test(protocolOf(url));
}

function protocolOf(url: string | undefined): string {
  return url !== undefined && URL.canParse(url) ? new URL(url).protocol : "";
}
