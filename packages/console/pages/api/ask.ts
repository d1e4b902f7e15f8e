import { ApiError, unreachable } from "./api-error.ts";

/** Path of the console's mount, as the shell says it: "" or `/_coinslot`. */
export const base =
  document.querySelector<HTMLMetaElement>('meta[name="coinslot-base"]')?.content ?? "";

const tokenName = `coinslot-token:${base}`;

/** The session's half that a page keeps; the other half is a cookie. */
export const token = {
  read: () => localStorage.getItem(tokenName),
  write: (value: string) => localStorage.setItem(tokenName, value),
  clear: () => localStorage.removeItem(tokenName),
};

export interface Asked {
  method: "GET" | "POST" | "DELETE";
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  /** The page asks by itself: the session's life is not prolonged. */
  isBackground?: boolean;
  signal?: AbortSignal | undefined;
}

/** Asks the console's API. @throws ApiError */
export async function ask(path: string, asked: Asked): Promise<unknown> {
  const { method, body, headers, isBackground = false, signal } = asked;
  const response = await fetch(`${base}/api/${path}`, {
    method,
    headers: {
      "X-Coinslot-Token": token.read() ?? "none",
      ...(method === "GET" ? {} : { "Content-Type": "application/json" }),
      ...(isBackground ? { "X-Coinslot-Background": "1" } : {}),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw unreachable();
  });
  const text = await response.text().catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw unreachable();
  });
  const answer = parse(text);
  if (response.ok) return answer;
  throw new ApiError(response.status, isRecord(answer) ? answer : {});
}

function parse(text: string): unknown {
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
