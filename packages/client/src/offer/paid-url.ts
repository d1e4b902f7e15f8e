import { PaymentError } from "../payment-error.ts";
import type { RepeatableRequest } from "../send/repeatable-request.ts";

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

function isLoopback(hostname: string): boolean {
  return (
    hostname === "localhost" ||
    hostname.endsWith(".localhost") ||
    hostname === "[::1]" ||
    /^127(\.[0-9]+){3}$/.test(hostname)
  );
}
