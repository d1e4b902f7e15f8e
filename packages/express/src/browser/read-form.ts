import type { PageForm } from "@coinslot/protocol";
import type { Request } from "express";
import { askSeller } from "../offer/seller-function-error.ts";
import { isBodyUnread, readRequestBody } from "../replay/request-body.ts";
import { limitKeyOf } from "../reservations/limit-key.ts";
import type { Visit } from "../sale.ts";

/** Longest body that a page repeats, in bytes. */
const maxFormBytes = 16_384;

const none: PageForm = { state: "none" };
const lost: PageForm = { state: "lost" };

/** Methods of links, which any page may lead along. */
const safeMethods = new Set(["GET", "HEAD"]);

/**
 * Reads the body of a request that gets a page, as its page will send it again. Only the form of a
 * page of the same origin is kept, also one without a field. From another origin's, the paid
 * request would carry cookies and an `Origin` that the form itself did not have.
 *
 * @returns `undefined` where the buyer has left
 */
export async function readForm(visit: Visit): Promise<PageForm | undefined> {
  const { request, settings, route, bodies } = visit;
  const { headers } = request;
  const length = Number(headers["content-length"] ?? 0);
  const isEmpty = headers["transfer-encoding"] === undefined && length === 0;
  if (isEmpty) return safeMethods.has(request.method) || isOfOwnPage(request) ? none : lost;
  const isForm = request.is("application/x-www-form-urlencoded");
  if (length > maxFormBytes || !isForm || !isOfOwnPage(request)) return lost;
  if (!isBodyUnread(request)) return keep(readParsed(request));
  const { clientKey, maxUnverifiedBytes, maxRequestBytes: maxBodyBytes } = settings;
  const key = await askSeller("clientKey", route.key, () => limitKeyOf(request, clientKey));
  let pooled: ReturnType<typeof bodies.open> | undefined;
  try {
    const body = await readRequestBody(request, {
      maxRequestBytes: maxFormBytes,
      open(onDrop) {
        // Its client's uploads are beside it: it measures them as they do.
        pooled = bodies.open({ key, maxUnverifiedBytes, maxBodyBytes, onDrop });
        return pooled;
      },
    });
    if (body.state === "aborted") return undefined;
    // It was put back for a later reader, which there is none of.
    const bytes: unknown = body.state === "known" ? request.read() : undefined;
    return keep(Buffer.isBuffer(bytes) ? bytes.toString("latin1") : undefined);
  } finally {
    pooled?.close();
  }
}

function isOfOwnPage({ headers }: Request): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site === "same-origin";
  const { origin, host } = headers;
  return origin !== undefined && URL.canParse(origin) && new URL(origin).host === host;
}

/** The text of a body that a parser has read: its bytes where it left them, else its members. */
function readParsed(request: Request): string | undefined {
  const rawBody: unknown = Reflect.get(request, "rawBody");
  if (typeof rawBody === "string") return rawBody;
  if (rawBody instanceof Uint8Array) return Buffer.from(rawBody).toString("latin1");
  const body: unknown = request.body;
  if (typeof body === "string") return body;
  if (typeof body !== "object" || body === null) return undefined;
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(body)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      // A nested value: its text cannot be known from here.
      if (typeof each !== "string") return undefined;
      pairs.append(name, each);
    }
  }
  return pairs.toString();
}

function keep(body: string | undefined): PageForm {
  // Browsers write forms in these signs alone.
  const isKept = body !== undefined && body.length <= maxFormBytes && /^[\x21-\x7e]+$/.test(body);
  return isKept ? { state: "kept", body } : lost;
}
