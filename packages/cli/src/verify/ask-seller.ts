import http from "node:http";
import https from "node:https";
import { SellerError } from "./seller-error.ts";

/** Longest body that is read: an offer of version 1 is a tenth of it. */
const maxBodyBytes = 262_144;

/** An answer of the seller, within bounds. */
export interface Answer {
  status: number;
  /** By name in lower case; one member for each line. */
  headers: Readonly<Record<string, readonly string[]>>;
  /** The first 256 KiB. */
  body: Buffer;
}

/** A request as it is sent: the path is not normalised. */
export interface Question {
  url: URL;
  method: string;
  path: string;
  headers: readonly (readonly [name: string, value: string])[];
  body: Uint8Array | undefined;
  timeoutMs: number;
  signal: AbortSignal;
}

/**
 * Sends one request over a connection of its own, and reads the answer before the deadline. Follows
 * no redirect, and decodes nothing. Heads of more than 16 KiB are refused, as clients do.
 *
 * @throws SellerError when no whole answer comes; the signal's reason when it was interrupted
 */
export async function askSeller(question: Question): Promise<Answer> {
  const { signal, timeoutMs } = question;
  const deadline = AbortSignal.timeout(timeoutMs);
  try {
    return await exchange(question, AbortSignal.any([signal, deadline]));
  } catch (error) {
    signal.throwIfAborted();
    if (deadline.aborted) {
      throw new SellerError(`no whole answer within ${timeoutMs / 1000} s`, { cause: error });
    }
    throw new SellerError(describe(error), { cause: error });
  }
}

function exchange(question: Question, signal: AbortSignal): Promise<Answer> {
  const { url, method, path, headers, body } = question;
  return new Promise((resolve, reject) => {
    const { request: open } = url.protocol === "https:" ? https : http;
    const options = { method, path, signal, agent: false, headers: toHeaders(headers, body) };
    let isAnswered = false;
    const request = open(url, options, (response) => {
      isAnswered = true;
      readBody(response).then((read) => {
        const { statusCode = 0, headersDistinct } = response;
        const own = Object.entries(headersDistinct).map(([name, lines = []]) => [name, lines]);
        resolve({ status: statusCode, headers: Object.fromEntries(own), body: read });
      }, reject);
    });
    request.on("error", reject);
    // An answer of 101 ends without an error.
    request.once("close", () => {
      if (!isAnswered) reject(new Error("The connection ended without an answer"));
    });
    request.end(body);
  });
}

async function readBody(response: http.IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    const bytes = Buffer.from(chunk);
    chunks.push(bytes);
    length += bytes.length;
    // The end of the loop destroys the response, and its connection.
    if (length >= maxBodyBytes) break;
  }
  return Buffer.concat(chunks).subarray(0, maxBodyBytes);
}

/** Repeated names become several lines. */
function toHeaders(
  headers: Question["headers"],
  body: Uint8Array | undefined,
): Record<string, string[] | string> {
  const lines: Record<string, string[]> = {};
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    lines[key] = [...(lines[key] ?? []), value];
  }
  // The body's own length, whatever the caller's headers say.
  return body === undefined ? lines : { ...lines, "content-length": String(body.byteLength) };
}

/** Words for a failed exchange. Those of the error may hold the seller's. */
function describe(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (code === "HPE_HEADER_OVERFLOW") return "its headers are larger than clients take (16 KiB)";
  if (code.startsWith("HPE_")) return "its answer is no HTTP";
  if (code === "ECONNREFUSED") return "nothing listens there";
  return /^[A-Z_]{1,40}$/.test(code) ? `the connection broke (${code})` : "the connection broke";
}

/** The lines of a header, joined as `fetch` joins them; `undefined` where it is absent. */
export function headerOf({ headers }: Answer, name: string): string | undefined {
  return headers[name.toLowerCase()]?.join(", ");
}

export function isSuccess({ status }: Answer): boolean {
  return status >= 200 && status < 300;
}

/**
 * Returns whether the answer to a payment delivers. Sellers charge for a redirect: to a file, say.
 */
export function isDelivered({ status }: Answer): boolean {
  return status >= 200 && status < 400;
}
