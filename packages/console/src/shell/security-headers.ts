import type { ServerResponse } from "node:http";

/**
 * Headers of every answer. Scripts count by their nonce alone: on a shop's origin, `'self'` would
 * run whatever a buyer can upload there.
 */
export function setSecurityHeaders(response: ServerResponse, nonce: string | undefined): void {
  const scripts = nonce === undefined ? "'none'" : `'nonce-${nonce}'`;
  const styles = nonce === undefined ? "'none'" : `'self' 'nonce-${nonce}'`;
  const policy = [
    "default-src 'self'",
    `script-src ${scripts}`,
    `style-src ${styles}`,
    "img-src 'self' data:",
    "object-src 'none'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  for (const [name, value] of Object.entries({
    "Content-Security-Policy": policy,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "X-Robots-Tag": "noindex",
  })) {
    response.setHeader(name, value);
  }
}
