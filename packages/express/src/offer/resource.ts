import type { ResourceInfo } from "@coinslot/protocol";
import type { Request } from "express";
import type { Visit } from "../sale.ts";

/** Longer ones would swell the offer, which travels in a header. */
const maxUrl = 2048;
const plainHost = /^[A-Za-z0-9._-]+(?::[0-9]{1,5})?$|^\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?$/;

/** The resource that this request buys. */
export function resourceOf({ request, route, settings }: Visit): ResourceInfo {
  const { description, mimeType, resource } = route;
  return {
    url: resource ?? resourceUrl(request, settings.publicUrl),
    ...(description === undefined ? {} : { description }),
    ...(mimeType === undefined ? {} : { mimeType }),
  };
}

/**
 * The absolute URL of a request, as its buyer wrote it. Without a public URL, a proxy's host and
 * protocol are trusted only under the application's `trust proxy`. The query of a very long URL is
 * left out.
 */
export function resourceUrl(request: Request, publicUrl: string | undefined): string {
  const origin = publicUrl ?? originOf(request);
  const target = request.originalUrl;
  const path = target.startsWith("/")
    ? target
    : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, "");
  const url = origin + path;
  if (url.length <= maxUrl) return url;
  return (url.split("?", 1)[0] ?? origin).slice(0, maxUrl);
}

/** The host that this request was sent to, without a port: in lower case, printable ASCII. */
export function hostnameOf(request: Request, publicUrl: string | undefined): string {
  const host = publicUrl === undefined ? hostOf(request) : new URL(publicUrl).host;
  return host.replace(/:[0-9]{1,5}$/, "").toLowerCase();
}

function originOf(request: Request): string {
  return `${request.protocol === "https" ? "https" : "http"}://${hostOf(request)}`;
}

// Express 4 and 5 differ in whether `req.host` has a port, so the header is read here.
function hostOf(request: Request): string {
  const isTrusted: unknown = request.app.get("trust proxy fn");
  if (typeof isTrusted === "function" && isTrusted(request.socket.remoteAddress, 0) === true) {
    const forwarded = request.get("X-Forwarded-Host")?.split(",", 1)[0]?.trim();
    if (forwarded !== undefined && plainHost.test(forwarded)) return forwarded;
  }
  const { host } = request.headers;
  return host !== undefined && plainHost.test(host) ? host : "localhost";
}
