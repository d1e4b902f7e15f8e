import type { PostEvent } from "./post-event.ts";
import type { SignEvent } from "./sign-event.ts";

/** A receiver of webhooks. */
export interface WebhookTarget {
  url: URL;
  sign: SignEvent;
  post: PostEvent;
}

/** Result of one attempt. `error` is for people, and repeats neither URL nor secret. */
export type AttemptOutcome = { outcome: "delivered" } | { outcome: "failed"; error: string };

/**
 * Posts a signed event once. Delivered is a status of 2xx, whatever the body of the answer. A
 * redirect is not followed: its target was not checked, and may be another party.
 */
export async function attemptDelivery(
  { url, sign, post }: WebhookTarget,
  event: { id: string; body: string; nowMs: number },
): Promise<AttemptOutcome> {
  const headers = { "Content-Type": "application/json", ...sign(event) };
  try {
    const status = await post({ url, headers, body: event.body });
    if (status >= 200 && status < 300) return { outcome: "delivered" };
    const isRedirect = status >= 300 && status < 400;
    const note = isRedirect ? ": redirects are not followed, configure the new URL" : "";
    return { outcome: "failed", error: `answered ${status}${note}` };
  } catch (error) {
    return { outcome: "failed", error: describe(error) };
  }
}

/** Codes and names alone: messages of the system contain addresses. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return "not sent";
  if (error.name === "AbortError" || error.name === "TimeoutError") return "no answer in time";
  if (error.name === "NotPublicError") return "its host has no public address";
  // A connection that was kept, and had been closed, has its error as the cause.
  const { code } = { code: undefined, ...(error.cause instanceof Error ? error.cause : error) };
  return typeof code === "string" ? `not sent: ${code}` : "not sent";
}
