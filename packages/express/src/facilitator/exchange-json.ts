import { FacilitatorError } from "@coinslot/protocol";

/** An answer of the protocol: 200, or 400 about our request. */
export interface JsonAnswer {
  status: 200 | 400;
  json: unknown;
}

const maxFacilitatorAnswerBytes = 256 * 2 ** 10;

/**
 * Sends JSON and reads JSON. One deadline covers the body of the answer, too, which has a bound.
 * Redirects are not followed: the seller did not choose their target.
 *
 * @throws FacilitatorError `unavailable` when there is no answer, or the facilitator cannot give
 * one; `bad_response` when the answer is something else. Its message names no address.
 */
export async function exchangeJson(options: {
  url: string;
  method: "GET" | "POST";
  headers: Record<string, string>;
  body: unknown;
  timeoutMs: number;
  fetch: typeof fetch;
}): Promise<JsonAnswer> {
  const { url, method, headers, body, timeoutMs } = options;
  const response = await reach(() =>
    options.fetch(url, {
      method,
      headers: { ...headers, Accept: "application/json", "Content-Type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
      redirect: "manual",
      signal: AbortSignal.timeout(timeoutMs),
    }),
  );
  const { status } = response;
  if (status === 200 || status === 400) {
    const text = await reach(() => readText(response));
    return { status, json: parse(text) };
  }
  await response.body?.cancel();
  if (status >= 500 || status === 408 || status === 429) {
    throw new FacilitatorError(`The facilitator answered ${status}`, {
      kind: "unavailable",
      ...readRetryAfter(response),
    });
  }
  throw new FacilitatorError(`The facilitator answered ${status}`, { kind: "bad_response" });
}

const maxRetryAfterSeconds = 3_600;

/** Reads seconds alone: a date would be compared with another clock than the facilitator's. */
function readRetryAfter({ headers }: Response): { retryAfterSeconds?: number } {
  const header = headers.get("retry-after") ?? "";
  if (!/^\d{1,9}$/.test(header)) return {};
  return { retryAfterSeconds: Math.min(Number(header), maxRetryAfterSeconds) };
}

async function reach<T>(attempt: () => Promise<T>): Promise<T> {
  try {
    return await attempt();
  } catch (cause) {
    if (cause instanceof FacilitatorError) throw cause;
    throw new FacilitatorError("The facilitator could not be reached", {
      kind: "unavailable",
      cause,
    });
  }
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > maxFacilitatorAnswerBytes) {
      throw new FacilitatorError("The facilitator's answer is too large", { kind: "bad_response" });
    }
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new FacilitatorError("The facilitator's answer is not JSON", {
      kind: "bad_response",
      cause,
    });
  }
}
