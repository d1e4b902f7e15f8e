import type { ServerResponse } from "node:http";
import type { Refusal } from "./refusal.ts";

/** Answers in JSON. Amounts are decimal strings. */
export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  if (response.headersSent) return;
  response.writeHead(status, { "Content-Type": "application/json; charset=utf-8" });
  response.end(toJson(body));
}

/** JSON with decimal strings for what JSON has no number for. */
function toJson(body: unknown): string {
  return JSON.stringify(body, (_name, value: unknown) =>
    typeof value === "bigint" ? String(value) : value,
  );
}

/** Answers with a refusal, in JSON. */
export function sendRefusal(response: ServerResponse, refusal: Refusal): void {
  const { status, code, message, remedy, details, retryAfterSeconds } = refusal;
  if (response.headersSent) return;
  if (retryAfterSeconds !== undefined) response.setHeader("Retry-After", retryAfterSeconds);
  // The rest of a refused body is not read.
  if (!response.req.complete) response.setHeader("Connection", "close");
  sendJson(response, status, { ...details, code, message, remedy });
}
