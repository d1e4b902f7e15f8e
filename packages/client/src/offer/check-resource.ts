import { PaymentError } from "../payment-error.ts";
import type { OfferedWay } from "../wires/wire.ts";
import { isPrivateHost } from "./private-host.ts";

/**
 * Refuses an offer for a resource of another host. Scheme, port and path are not compared: a proxy
 * in front of the seller changes each of them. A private host is the seller's own address behind
 * such a proxy. The README of this package has the cases and the reason.
 *
 * @throws PaymentError `resource_mismatch`
 */
export function checkResource({ resource }: Pick<OfferedWay, "resource">, url: URL): void {
  if (resource === undefined || resource === "") return;
  const named = URL.canParse(resource, url.href) ? new URL(resource, url) : undefined;
  if (named === undefined || !isHttp(named)) {
    throw new PaymentError(
      "resource_mismatch",
      `${url.host} offers a resource that is not an HTTP URL; nothing was signed`,
    );
  }
  if (nameOf(named) === nameOf(url) || isPrivateHost(nameOf(named))) return;
  throw new PaymentError(
    "resource_mismatch",
    `${url.host} offers a resource of ${named.host.slice(0, maxHost)}; nothing was signed. ` +
      `A seller behind a proxy sets publicUrl (COINSLOT_PUBLIC_URL) to ${url.origin}, ` +
      "or lets its proxy pass on the Host header",
  );
}

/** No DNS name is longer, with its port. */
const maxHost = 259;

function isHttp({ protocol }: URL): boolean {
  return protocol === "http:" || protocol === "https:";
}

/** Without the dot that ends a fully qualified name. */
function nameOf({ hostname }: URL): string {
  return hostname.replace(/\.$/, "");
}
