import type { IncomingMessage } from "node:http";

/** The header that a script must set: a form of another site cannot. */
const guardHeader = "x-coinslot-inspector";

/**
 * Returns why a request is not the page's own: it names another host (DNS rebinding), or comes from
 * another origin. Other ports of this machine are other origins, and the proxied seller is one.
 */
export function findForeignness(request: IncomingMessage, port: number): string | undefined {
  const { headers, method = "GET", url = "" } = request;
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`];
  if (!hosts.includes(headers.host?.toLowerCase() ?? "")) return "The Host is not the inspector's.";
  const { origin } = headers;
  if (origin !== undefined && !hosts.some((host) => origin === `http://${host}`)) {
    return "The request comes from another origin.";
  }
  const site = headers["sec-fetch-site"];
  // The shell holds nothing: a link of another page may lead there.
  const isLink = url === "/" && method === "GET" && headers["sec-fetch-dest"] === "document";
  if (site !== undefined && site !== "same-origin" && site !== "none" && !isLink) {
    return "The request comes from another site.";
  }
  if (method === "GET" || method === "HEAD") return undefined;
  const isOwn = headers[guardHeader] === "1" && headers["content-type"] === "application/json";
  return isOwn ? undefined : "The request is not the page's.";
}
