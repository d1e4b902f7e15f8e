import type { IncomingMessage } from "node:http";
import { headerName } from "@coinslot/protocol";

const paymentHeaders = new Set(
  [headerName.payment, headerName.paymentSignature].map((name) => name.toLowerCase()),
);

/**
 * Removes the payment from a request whose handler runs. A handler that forwards its headers, as
 * proxies do, would give a signed payment to the upstream, and a logger would record it.
 */
export function withholdPayment(request: IncomingMessage): void {
  const { rawHeaders } = request;
  for (const name of paymentHeaders) {
    Reflect.deleteProperty(request.headers, name);
    Reflect.deleteProperty(request.headersDistinct, name);
  }
  for (let index = rawHeaders.length - 2; index >= 0; index -= 2) {
    if (paymentHeaders.has(String(rawHeaders[index]).toLowerCase())) rawHeaders.splice(index, 2);
  }
}
