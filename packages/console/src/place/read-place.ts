import type { IncomingMessage } from "node:http";

/** Place at which a request has reached the console. */
export interface Place {
  /** Origin of the pages there, as browsers write it: `http://localhost:4040`. */
  origin: string;
  /**
   * Origin for links that are printed: a configured one, or that of the listener. A program of this
   * machine may write the address of its own listener into `Host`: the link would lead the operator
   * there, and hand its secret over.
   */
  linkOrigin: string;
  /** The request comes from a program of this machine, and no known proxy has passed it on. */
  isLoopback: boolean;
}

export type ReadPlace = (request: IncomingMessage) => Place | undefined;

const loopbackHost = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/;
const loopbackPeer = /^(?:::ffff:)?127(?:\.\d{1,3}){3}$|^::1$/;

/** Headers that proxies add. One of them is enough: an honest browser sends none. */
const forwardingHeaders = [
  ...["forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "x-original-host"],
  ...["cf-connecting-ip", "true-client-ip", "fly-client-ip", "x-envoy-external-address"],
];

/**
 * Creates the reader of places. A request under any other name is at none: a web page whose name
 * was rebound to this machine sends its own `Host`.
 */
export function createPlaceReader(origins: readonly string[]): ReadPlace {
  const byHost = new Map(origins.map((origin) => [new URL(origin).host, origin]));

  return (request) => {
    const host = request.headers.host?.toLowerCase();
    if (host === undefined) return undefined;
    const isLoopback = isOnLoopback(request, host);
    const configured = byHost.get(host);
    if (configured !== undefined) {
      return { origin: configured, linkOrigin: configured, isLoopback };
    }
    if (!isLoopback) return undefined;
    const { origin } = new URL(`${isEncrypted(request) ? "https" : "http"}://${host}`);
    return { origin, linkOrigin: listenerOf(request, origin), isLoopback };
  };
}

/** A proxy in its default settings speaks HTTP/1.0, which no browser does. */
function isOnLoopback({ socket, headers, httpVersion }: IncomingMessage, host: string): boolean {
  if (!loopbackHost.test(host) || httpVersion === "1.0") return false;
  if (!loopbackPeer.test(socket.remoteAddress ?? "")) return false;
  return !Object.keys(headers).some(
    (name) => name.startsWith("x-forwarded") || forwardingHeaders.includes(name),
  );
}

/**
 * `localhost` may be another program's `::1`: without a certificate, the address itself is taken.
 */
function listenerOf({ socket }: IncomingMessage, origin: string): string {
  const url = new URL(origin);
  url.port = String(socket.localPort ?? "");
  if (url.protocol === "http:") {
    url.hostname = socket.localAddress === "::1" ? "[::1]" : "127.0.0.1";
  }
  return url.origin;
}

function isEncrypted({ socket }: IncomingMessage): boolean {
  return "encrypted" in socket && socket.encrypted === true;
}
