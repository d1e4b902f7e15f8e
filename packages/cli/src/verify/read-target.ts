import { isLoopbackHost } from "@coinslot/inspector";
import { UsageError } from "../exit-code.ts";
import type { BuyerRequest } from "../pay/read-request.ts";

/** The request to verify, at a host that the person has confirmed. */
export interface Target {
  request: BuyerRequest;
  url: URL;
  /** Path and query, as they are sent. */
  path: string;
  /** Path and query of another paid route, at the same price. */
  otherPath: string | undefined;
  /** Path and query of a paid route whose handler fails. */
  failingPath: string | undefined;
}

/**
 * Reads the routes to verify.
 *
 * @throws UsageError for a host that is neither loopback nor the person's own
 * @throws UsageError for a password in the URL, plain HTTP to another machine, and paths that lead
 * elsewhere
 */
export function readTarget(options: {
  request: BuyerRequest;
  iOwn?: string | undefined;
  allowInsecureHttp?: boolean | undefined;
  other?: string | undefined;
  failing?: string | undefined;
}): Target {
  const { request, iOwn, allowInsecureHttp, other, failing } = options;
  const url = new URL(request.url);
  if (url.username !== "" || url.password !== "") {
    throw new UsageError("<url> holds a user name or a password: send them by --header.");
  }
  const isLocal = isLoopbackHost(url.hostname);
  if (!isLocal && iOwn !== url.host) {
    throw new UsageError(
      `${url.host} is another machine. This makes payments that a seller must refuse: verify your own alone. If it is yours, add --i-own ${url.host}`,
    );
  }
  if (!isLocal && url.protocol === "http:" && !allowInsecureHttp) {
    throw new UsageError(
      "Payments over plain HTTP can be read: use https, or --allow-insecure-http.",
    );
  }
  return {
    request,
    url,
    path: `${url.pathname}${url.search}`,
    otherPath: readPath("--other", other, url),
    failingPath: readPath("--failing", failing, url),
  };
}

function readPath(option: string, path: string | undefined, base: URL): string | undefined {
  if (path === undefined) return undefined;
  const url = URL.canParse(path, base.origin) ? new URL(path, base.origin) : undefined;
  if (url === undefined || !path.startsWith("/") || url.origin !== base.origin) {
    throw new UsageError(`${option} must be a path of the same host, such as /weather.`);
  }
  return `${url.pathname}${url.search}`;
}
