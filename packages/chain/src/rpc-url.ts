/** One RPC URL, taken apart into what `fetch` accepts and what nobody may read. */
export interface RpcUrl {
  /** The URL without user and password, which `fetch` refuses. */
  href: string;
  headers: Readonly<Record<string, string>>;
  /** Parts that are, or may hold, a key. */
  secrets: readonly string[];
}

/** Shorter parts ("v2", "rpc") are no keys, and hiding them would garble every text. */
const SHORTEST_SECRET = 8;

/** Parses RPC URLs. Throws one `TypeError` for all faulty ones, which names them by place only. */
export function parseRpcUrls(rpcUrls: readonly string[]): RpcUrl[] {
  if (rpcUrls.length === 0) throw new TypeError("rpcUrls is empty: at least one RPC URL is needed");
  const problems: string[] = [];
  const parsed: RpcUrl[] = [];
  for (const [index, text] of rpcUrls.entries()) {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (!url) problems.push(`rpcUrls[${index}] is not a URL`);
    else if (url.protocol !== "http:" && url.protocol !== "https:")
      problems.push(`rpcUrls[${index}] must begin with http:// or https://`);
    else parsed.push(takeApart(url));
  }
  if (problems.length > 0) throw new TypeError(problems.join("; "));
  return parsed;
}

function takeApart(url: URL): RpcUrl {
  const user = decodeURIComponent(url.username);
  const password = decodeURIComponent(url.password);
  const secrets = [
    url.href,
    url.host,
    url.hostname,
    user,
    password,
    ...url.pathname.split("/"),
    ...url.searchParams.values(),
  ].filter((part) => part.length >= SHORTEST_SECRET);
  const bare = new URL(url);
  bare.username = "";
  bare.password = "";
  bare.hash = "";
  const credentials = new TextEncoder().encode(`${user}:${password}`);
  const authorization = btoa(String.fromCharCode(...credentials));
  return {
    href: bare.href,
    headers: user || password ? { authorization: `Basic ${authorization}` } : {},
    secrets,
  };
}

const ANY_URL = /\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>]+/gi;

const LONG_BYTES = /0x[0-9a-f]{65,}/gi;

/**
 * Leaves hashes and addresses in words of a node, and no longer bytes: a node that refuses a
 * transaction may echo it, and the authorizations in it are still good.
 */
export function shortenBytes(text: string): string {
  return text.replace(LONG_BYTES, (bytes) => `${bytes.slice(0, 10)}…`);
}

/**
 * Removes URLs, and the known parts of ours, from a value that a node sent. Nodes and their proxies
 * like to echo the request's URL in an error, and such texts end up in logs and answers.
 */
export function createRedactor(urls: readonly RpcUrl[]): (value: unknown) => unknown {
  const secrets = urls.flatMap((url) => url.secrets).sort((a, b) => b.length - a.length);
  return function redact(value: unknown): unknown {
    if (typeof value === "string") {
      const withoutUrls = value.replace(ANY_URL, "[url]");
      return secrets.reduce((text, secret) => text.replaceAll(secret, "[url]"), withoutUrls);
    }
    if (Array.isArray(value)) return value.map(redact);
    if (typeof value === "object" && value !== null)
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, redact(item)]));
    return value;
  };
}
