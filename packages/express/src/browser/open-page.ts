import { randomBytes } from "node:crypto";
import type { PaymentRequirements } from "@coinslot/protocol";
import type { Response } from "express";
import { resourceOf, resourceUrl } from "../offer/resource.ts";
import type { UnpaidBytes } from "../routes/read-unpaid-body.ts";
import type { Visit } from "../sale.ts";
import { payCommand } from "./pay-command.ts";
import { plainPage } from "./plain-page.ts";
import { readForm } from "./read-form.ts";
import { pageDecidedBy } from "./wants-page.ts";

/**
 * Writes the page of an unpaid request, and its headers into the response.
 *
 * @returns `undefined` where the buyer has left
 */
export async function openPage(
  visit: Visit,
  accepts: readonly PaymentRequirements[],
): Promise<UnpaidBytes | undefined> {
  const { request, response, settings } = visit;
  const form = await readForm(visit);
  if (form === undefined) return undefined;
  const { method, headers } = request;
  const nonce = randomBytes(18).toString("base64url");
  const demand = {
    method,
    resource: resourceOf(visit),
    accepts,
    form,
    command: payCommand({ method, url: resourceUrl(request, settings.publicUrl), form }),
    languages: headers["accept-language"] ?? "",
    accept: headers.accept ?? "*/*",
    nonce,
  };
  let html: string;
  try {
    html = (settings.paywall ?? plainPage).writePage(demand);
  } catch (error) {
    // The seller's theme is at fault, and a buyer may still pay by the plain page.
    settings.onError(error);
    html = plainPage.writePage(demand);
  }
  protect(response, nonce);
  return { contentType: "text/html; charset=utf-8", body: Buffer.from(html) };
}

/** The page runs its own script alone, and no other page frames it or reads its address. */
function protect(response: Response, nonce: string): void {
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ];
  response.setHeader("Content-Security-Policy", policy.join("; "));
  response.setHeader("X-Content-Type-Options", "nosniff");
  response.setHeader("Referrer-Policy", "same-origin");
  response.vary(pageDecidedBy);
}
