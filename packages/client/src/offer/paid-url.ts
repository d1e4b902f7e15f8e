import { PaymentError } from "../payment-error.ts";
import type { RepeatableRequest } from "../send/repeatable-request.ts";

/**
 * The URL that a payment may be sent to. It is the one that answered with the offer, if it has the
 * origin of the caller's request. A payment is sent to no other origin.
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
      `A redirect led from ${request.url.host} to ${url.host}, which requires payment; nothing was signed`,
    );
  }
  // A redirect may have changed another method and its body; the response does not show it.
  if (response.redirected && request.method !== "GET" && request.method !== "HEAD") {
    throw new PaymentError(
      "redirected",
      `A ${request.method} was redirected to a URL that requires payment: send it there directly`,
    );
  }
  if (url.protocol !== "https:" && !allowInsecureHttp && !isLoopback(url.hostname)) {
    throw new PaymentError(
      "insecure_url",
      `${url.host} requires payment over plain HTTP; use https, or set allowInsecureHttp`,
    );
  }
  return url;
}

function isLoopback(hostname: string): boolean {
  return (
    hostname === "localhost" ||
    hostname.endsWith(".localhost") ||
    hostname === "[::1]" ||
    /^127(\.[0-9]+){3}$/.test(hostname)
  );
}
