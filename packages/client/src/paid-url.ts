import type { Offer, OfferedRequirements } from "@coinslot/protocol";
import { PaymentError } from "./payment-error.ts";
import type { RepeatableRequest } from "./repeatable-request.ts";

/**
 * Where a payment may be sent: the URL that answered with the offer, if it is of the origin that
 * the caller asked. A payment is sent to nobody else.
 *
 * @throws PaymentError `redirected` or `insecure_url`
 */
export function findPaidUrl(options: {
  request: RepeatableRequest;
  response: Response;
  allowInsecureHttp: boolean;
}): URL {
  const { request, response, allowInsecureHttp } = options;
  const url = response.url === "" ? request.url : new URL(response.url);
  if (url.origin !== request.url.origin) {
    throw new PaymentError(
      "redirected",
      `A redirect led from ${request.url.host} to ${url.host}, which asks for payment; nothing was signed`,
    );
  }
  // What became of another method and its body on the way is not known here.
  if (response.redirected && request.method !== "GET" && request.method !== "HEAD") {
    throw new PaymentError(
      "redirected",
      `A ${request.method} was redirected to where payment is asked for: send it there directly`,
    );
  }
  if (url.protocol !== "https:" && !allowInsecureHttp && !isLoopback(url.hostname)) {
    throw new PaymentError(
      "insecure_url",
      `${url.host} asks for payment over plain HTTP; use https, or set allowInsecureHttp`,
    );
  }
  return url;
}

/**
 * Makes sure that the offer is for what was asked. The host decides, not the whole origin: a seller
 * behind a proxy that ends TLS believes that it is asked over plain HTTP.
 *
 * @throws PaymentError `resource_mismatch`
 */
export function checkResource(offer: Offer, offered: OfferedRequirements, url: URL): void {
  const resource = offered.x402Version === 1 ? offered.resourceUrl : offer.resource?.url;
  if (resource === undefined || resource === "") return;
  if (URL.canParse(resource, url.href) && new URL(resource, url).host === url.host) return;
  throw new PaymentError(
    "resource_mismatch",
    `The offer of ${url.host} is for a resource that is not its own`,
  );
}

function isLoopback(hostname: string): boolean {
  return (
    hostname === "localhost" ||
    hostname.endsWith(".localhost") ||
    hostname === "[::1]" ||
    /^127(\.[0-9]+){3}$/.test(hostname)
  );
}
