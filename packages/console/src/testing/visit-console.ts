import { request } from "node:http";
import { buffer } from "node:stream/consumers";

/** A request as a program sends it, under any name. */
export interface TestRequest {
  method?: string;
  path: string;
  headers?: Record<string, string | string[]>;
  /** Sent as JSON. */
  body?: unknown;
}

export interface TestAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  /** The body as it was sent: compressed where its headers say so. */
  bytes: Buffer;
  text: string;
  json: unknown;
}

/** Sends a request to an origin, with headers that a browser would not let a script set. */
export function send(origin: string, options: TestRequest): Promise<TestAnswer> {
  const { method = "GET", path, headers = {}, body } = options;
  return new Promise((resolve, reject) => {
    const sent = request(`${origin}${path}`, { method, headers, agent: false }, (response) => {
      buffer(response).then((bytes) => {
        const text = bytes.toString();
        const { statusCode: status = 0, headers } = response;
        resolve({ status, headers, bytes, text, json: parse(text) });
      }, reject);
    });
    sent.on("error", reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** Headers of a page of the origin, with the token of its session. */
export function ofPage(origin: string, token = "none", cookie?: string): Record<string, string> {
  return {
    Origin: origin,
    "Sec-Fetch-Site": "same-origin",
    "Content-Type": "application/json",
    "X-Coinslot-Token": token,
    ...(cookie !== undefined && { Cookie: cookie }),
  };
}

function parse(answer: string): unknown {
  try {
    return JSON.parse(answer);
  } catch {
    return undefined;
  }
}
