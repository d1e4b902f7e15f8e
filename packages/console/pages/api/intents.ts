import { ApiError } from "./api-error.ts";
import { base } from "./ask.ts";

/** An act that was sent from this tab, and the idempotency key of all its repetitions. */
export interface Intent {
  key: string;
  argument: unknown;
  /** Its answer has not come: it may have happened. */
  isOpen: boolean;
}

const keyForm = /^[0-9a-f]{32}$/;

/**
 * The last intent for a subject, such as a payment. It survives a reload of the page, and ends with
 * its tab.
 */
export function readIntent(act: string, subject: string): Intent | undefined {
  const stored: unknown = JSON.parse(sessionStorage.getItem(nameOf(act, subject)) ?? "null");
  if (typeof stored !== "object" || stored === null) return undefined;
  const { key, argument, isOpen } = { key: "", argument: null, isOpen: true, ...stored };
  return typeof key === "string" && keyForm.test(key)
    ? { key, argument, isOpen: isOpen !== false }
    : undefined;
}

/**
 * Keeps an intent before its request leaves. The same argument keeps its key.
 *
 * @returns the intent, and whether an earlier request of it has had no answer
 * @throws ApiError while another intent for the subject has no answer, or nothing can be kept
 */
export function openIntent(act: string, subject: string, argument: unknown) {
  const last = readIntent(act, subject);
  const isSame = last !== undefined && sameJson(last.argument, argument);
  const wasOpen = last?.isOpen ?? false;
  if (wasOpen && !isSame) throw answerMissing();
  const intent: Intent = { key: isSame ? last.key : drawKey(), argument, isOpen: true };
  keep(act, subject, intent);
  return { ...intent, wasOpen };
}

/**
 * Notes the end of a request. An act that is done gives its key up: the next one is another act.
 */
export function endIntent(
  act: string,
  subject: string,
  { intent, error }: { intent: Intent & { wasOpen: boolean }; error?: ApiError | undefined },
): void {
  const { wasOpen, ...kept } = intent;
  if (error === undefined || otherActs.includes(error.code)) {
    sessionStorage.removeItem(nameOf(act, subject));
    return;
  }
  const isOpen = isRefusal(error) ? false : isBefore(error) ? wasOpen : true;
  keep(act, subject, { ...kept, isOpen });
}

/** The key is another act's: this one has not happened. */
const otherActs: readonly string[] = ["key_reused", "key_conflict"];

/** The operation itself has refused: no request with this key has changed anything. */
const isRefusal = ({ status }: ApiError) => status === 400 || status === 409;

/** Refused before the operation: this request has changed nothing, an earlier one may have. */
const isBefore = ({ status }: ApiError) => status >= 400 && status < 500 && status !== 408;

function keep(act: string, subject: string, intent: Intent): void {
  try {
    sessionStorage.setItem(nameOf(act, subject), JSON.stringify(intent));
  } catch {
    throw new ApiError(0, {
      code: "storage_needed",
      message: "This browser keeps nothing for the page. Nothing was sent.",
      remedy: "A repetition would be a second act. Allow this site to keep data, and try again.",
    });
  }
}

function answerMissing(): ApiError {
  return new ApiError(0, {
    code: "answer_missing",
    message: "An earlier request has had no answer. Nothing was sent.",
    remedy: "Reload the page, and ask again for that one first.",
  });
}

const nameOf = (act: string, subject: string) => `coinslot-act:${base} ${act} ${subject}`;

const sameJson = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

function drawKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
