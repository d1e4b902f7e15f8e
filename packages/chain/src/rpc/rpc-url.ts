/** One RPC URL, split into its public and its secret parts. */
export interface RpcUrl {
  /** The URL without user and password, which travel in a header. */
  href: string;
  headers: Readonly<Record<string, string>>;
  /** Parts that are, or may hold, a key. */
  secrets: readonly string[];
}

/** A WebSocket URL, with user and password in it. */
export type SocketUrl = Omit<RpcUrl, "headers">;

/** RPC URLs by purpose, each with its place in the configuration, counted from 1. */
export interface RpcUrls {
  /** At least one: requests go here. */
  http: readonly (RpcUrl & { number: number })[];
  /** Subscriptions to new heads use these; they receive no other request. */
  sockets: readonly (SocketUrl & { number: number })[];
}

/** Shorter parts ("v2", "rpc") are no keys, and hiding them would garble every text. */
const minSecret = 8;

/** Parses RPC URLs. Throws one `TypeError` for all faulty ones, which names them by place only. */
export function parseRpcUrls(rpcUrls: readonly string[]): RpcUrls {
  if (rpcUrls.length === 0) throw new TypeError("rpcUrls is empty: at least one RPC URL is needed");
  const problems: string[] = [];
  const http: RpcUrls["http"][number][] = [];
  const sockets: RpcUrls["sockets"][number][] = [];
  for (const [index, text] of rpcUrls.entries()) {
    const number = index + 1;
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (!url) problems.push(`rpcUrls[${index}] is not a URL`);
    else if (/^https?:$/.test(url.protocol)) http.push({ number, ...takeApart(url) });
    else if (/^wss?:$/.test(url.protocol)) {
      sockets.push({ number, href: url.href, secrets: secretsOf(url) });
    } else problems.push(`rpcUrls[${index}] must begin with http:// or https://, or wss://`);
  }
  if (problems.length === 0 && http.length === 0) {
    problems.push(
      "rpcUrls names WebSockets only: they announce new blocks, and requests need HTTP",
    );
  }
  if (problems.length > 0) throw new TypeError(problems.join("; "));
  return { http, sockets };
}

function secretsOf(url: URL): string[] {
  return [
    url.href,
    url.host,
    url.hostname,
    decodeURIComponent(url.username),
    decodeURIComponent(url.password),
    ...url.pathname.split("/"),
    ...url.searchParams.values(),
  ].filter((part) => part.length >= minSecret);
}

function takeApart(url: URL): RpcUrl {
  const user = decodeURIComponent(url.username);
  const password = decodeURIComponent(url.password);
  const bare = new URL(url);
  bare.username = "";
  bare.password = "";
  bare.hash = "";
  const credentials = new TextEncoder().encode(`${user}:${password}`);
  const authorization = btoa(String.fromCharCode(...credentials));
  return {
    href: bare.href,
    headers: user || password ? { authorization: `Basic ${authorization}` } : {},
    secrets: secretsOf(url),
  };
}

const anyUrl = /\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>]+/gi;

const longBytes = /0x[0-9a-f]{65,}/gi;

/**
 * Keeps hashes and addresses in a node's text, and cuts longer bytes. A node that refuses a
 * transaction may echo it, and the authorizations in it are still valid.
 */
export function shortenBytes(text: string): string {
  return text.replace(longBytes, (bytes) => `${bytes.slice(0, 10)}…`);
}

/**
 * Removes URLs, and the known parts of the configured ones, from a value that a node sent. Nodes
 * and their proxies often echo the request's URL in an error. Such texts end up in logs and
 * answers.
 */
export function createRedactor({ http, sockets }: RpcUrls): (value: unknown) => unknown {
  const secrets = [...http, ...sockets]
    .flatMap((url) => url.secrets)
    .sort((a, b) => b.length - a.length);
  return function redact(value: unknown): unknown {
    if (typeof value === "string") {
      const withoutUrls = value.replace(anyUrl, "[url]");
      return secrets.reduce((text, secret) => text.replaceAll(secret, "[url]"), withoutUrls);
    }
    if (Array.isArray(value)) return value.map(redact);
    if (typeof value === "object" && value !== null)
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, redact(item)]));
    return value;
  };
}
