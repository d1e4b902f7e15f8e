import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { encodePaymentPayload, headerName, type ReservingFacilitator } from "@coinslot/protocol";
import type { Request, Response } from "express";
import { resourceUrl } from "../offer/resource.ts";
import { idempotencyKeyOf } from "../replay/idempotency-key.ts";
import type { HeldAnswer } from "../response/held-answer.ts";
import type { MatchedPayment, Visit } from "../sale.ts";
import { createUsedTokens } from "./used-tokens.ts";

/**
 * A page pays by `fetch`, and its answer may be a page, too. This header asks for a cookie with
 * which one navigation to the same URL gets the kept answer. In an answer, it says that the cookie
 * is set.
 */
const redemptionHeader = "Coinslot-Redeem";
const requestHeader = redemptionHeader.toLowerCase();
/**
 * Path of the page in its browser. A proxy that cuts a prefix off hands no trace of it on. Browsers
 * do not send a cookie of another path.
 */
const pathHeader = "coinslot-redeem-path";
const cookieName = "coinslot_answer";
const lifeSeconds = 60;
/** Browsers keep no cookie over 4096 bytes, its name and attributes included. */
const maxCookie = 3_800;
const ivBytes = 12;
const tagBytes = 16;

/** Cookies of the name that are tried: another path, or another site of the domain, may set one. */
const maxTried = 4;

const used = createUsedTokens();
/** Paths of the cookies that brought a payment. */
const redeemed = new WeakMap<Request, string | undefined>();
const keys = new WeakMap<ReservingFacilitator, Promise<Buffer>>();

/** Returns whether a request's payment came out of a cookie: it may buy nothing new. */
export function isRedemption(request: Request): boolean {
  return redeemed.has(request);
}

/** Returns whether a request may bring a payment in a cookie. */
export function mayRedeem({ headers }: Request): boolean {
  return headers.cookie?.includes(`${cookieName}=`) === true;
}

/** Returns whether a request asks for the cookie. */
export function asksToRedeem({ headers }: Request): boolean {
  return headers[requestHeader] === "1";
}

/**
 * Writes the cookie for a paid answer that a browser shall open by a navigation. It holds the
 * payment and its idempotency key, encrypted for this URL, and no answer.
 *
 * @returns `undefined` where the answer cannot be fetched again
 */
export async function sealRedemption(
  order: MatchedPayment,
  answer: HeldAnswer,
): Promise<string | undefined> {
  const { request, payload, settings, facilitator } = order;
  if (!isForNavigation(answer)) return undefined;
  if (answer.body.length > settings.maxKeptAnswerBytes) return undefined;
  const key = idempotencyKeyOf(request, payload);
  const path = pagePathOf(order);
  if (key === undefined || payload.x402Version !== 2 || path === undefined) return undefined;
  const expiresAt = settings.now() + lifeSeconds * 1000;
  const token: Token = { payment: encodePaymentPayload(payload), key, expiresAt, path };
  try {
    const iv = randomBytes(ivBytes);
    const cipher = createCipheriv("aes-256-gcm", await keyOf(facilitator), iv);
    cipher.setAAD(Buffer.from(boundTo(request)));
    const text = Buffer.concat([cipher.update(JSON.stringify(token)), cipher.final()]);
    const value = Buffer.concat([iv, cipher.getAuthTag(), text]).toString("base64url");
    if (value.length > maxCookie - path.length) return undefined;
    return writeCookie(request, { value, path, maxAge: lifeSeconds });
  } catch (error) {
    settings.onError(error);
    return undefined;
  }
}

/** Adds a cookie to the head of an answer. */
export function setRedemption(response: Response, cookie: string | undefined): void {
  if (cookie === undefined) return;
  response.appendHeader("Set-Cookie", cookie);
  response.setHeader(redemptionHeader, String(lifeSeconds));
}

/** Removes the cookie from the browser, in the answer to the request that brought it. */
export function clearRedemption(visit: Visit): void {
  const { request, response } = visit;
  const path = mayRedeem(request) ? (redeemed.get(request) ?? pathOf(visit)) : undefined;
  if (path === undefined) return;
  response.appendHeader("Set-Cookie", writeCookie(request, { value: "", path, maxAge: 0 }));
}

/**
 * Puts the payment of a cookie into the headers of its request, once.
 *
 * @returns whether there was one for this request
 */
export async function redeem(visit: Visit): Promise<boolean> {
  const { request, settings, facilitator } = visit;
  const cookies = request.headers.cookie?.matchAll(/(?:^|;\s*)coinslot_answer=([\w-]{40,4096})/g);
  let key: Buffer;
  try {
    key = await keyOf(facilitator);
  } catch (error) {
    settings.onError(error);
    return false;
  }
  for (const [, value = ""] of [...(cookies ?? [])].slice(0, maxTried)) {
    const sealed = Buffer.from(value, "base64url");
    const token = open(sealed, key, boundTo(request));
    if (token === undefined || token.expiresAt <= settings.now()) continue;
    // Known by its random bytes: one token has many spellings in base64.
    const name = sealed.toString("base64url", 0, ivBytes);
    if (!used.use(name, token.expiresAt, settings.now())) continue;
    request.headers[headerName.paymentSignature.toLowerCase()] = token.payment;
    request.headers[headerName.idempotencyKey.toLowerCase()] = token.key;
    redeemed.set(request, token.path);
    return true;
  }
  return false;
}

/** The contents of a cookie. It is ours: a cipher has authenticated it. */
interface Token {
  /** As in its header. */
  payment: string;
  key: string;
  /** Unix milliseconds. */
  expiresAt: number;
  /** Of the cookie. A token of an earlier release has none. */
  path?: string;
}

function open(sealed: Buffer, key: Buffer, bound: string): Token | undefined {
  if (sealed.length < ivBytes + tagBytes) return undefined;
  const tag = sealed.subarray(ivBytes, ivBytes + tagBytes);
  try {
    const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, ivBytes));
    decipher.setAAD(Buffer.from(bound)).setAuthTag(tag);
    const text = [decipher.update(sealed.subarray(ivBytes + tagBytes)), decipher.final()];
    return JSON.parse(Buffer.concat(text).toString("utf8"));
  } catch {
    return undefined;
  }
}

/** A page to open, or a redirect, which a script cannot read. */
function isForNavigation({ status, headers }: HeldAnswer): boolean {
  if (status >= 300 && status < 400) return true;
  const type = headers.find(([name]) => name === "content-type")?.[1];
  return typeof type === "string" && /^(?:text\/html|application\/xhtml\+xml)\b/i.test(type);
}

/**
 * The request that a cookie serves. Its body is compared with the payment's, as in every request.
 */
function boundTo({ method, originalUrl }: Request): string {
  return `coinslot redemption ${method} ${originalUrl}`;
}

/** All processes of a ledger share its secret; another facilitator's gates have this process's. */
function keyOf(facilitator: ReservingFacilitator): Promise<Buffer> {
  const known = keys.get(facilitator);
  if (known !== undefined) return known;
  const made = derive(facilitator);
  keys.set(facilitator, made);
  // A ledger out of reach is asked again by the next request.
  made.catch(() => keys.delete(facilitator));
  return made;
}

async function derive(facilitator: ReservingFacilitator): Promise<Buffer> {
  const secret = (await facilitator.challengeSecret?.()) ?? randomBytes(32).toString("hex");
  return Buffer.from(hkdfSync("sha256", secret, "", "coinslot redemption", 32));
}

/** The path of a cookie, as the browser has it; `undefined` where no cookie can have it. */
function pathOf({ request, settings }: Visit): string | undefined {
  const url = resourceUrl(request, settings.publicUrl);
  const path = URL.canParse(url) ? new URL(url).pathname : undefined;
  return path !== undefined && isCookiePath(path) ? path : undefined;
}

/** The path as the page has it, where it ends like that of the request: a prefix was cut off. */
function pagePathOf(visit: Visit): string | undefined {
  const own = pathOf(visit);
  const claimed = visit.request.headers[pathHeader];
  const isPrefixed =
    own !== undefined &&
    typeof claimed === "string" &&
    claimed.endsWith(own) &&
    isCookiePath(claimed);
  return isPrefixed ? claimed : own;
}

function isCookiePath(path: string): boolean {
  return path.length <= 1_024 && /^\/[\x21-\x3a\x3c-\x7e]*$/.test(path);
}

function writeCookie(
  request: Request,
  { value, path, maxAge }: { value: string; path: string; maxAge: number },
): string {
  const secure = request.protocol === "https" ? "; Secure" : "";
  const attributes = `Path=${path}; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${secure}`;
  return `${cookieName}=${value}; ${attributes}`;
}
