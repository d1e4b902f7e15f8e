/** An answer other than a result: what happened, what to do, and a code to search for. */
export interface Refusal {
  status: number;
  code: string;
  message: string;
  remedy?: string | undefined;
  /** Further members of the answer. */
  details?: Record<string, unknown> | undefined;
  /** Seconds after which a repetition has a chance. */
  retryAfterSeconds?: number | undefined;
}

/** Carries a refusal up to the answer. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

/** Refusals of the console itself. An operation's own are its own. */
export const refusals = {
  malformed: (message: string): Refusal => ({ status: 400, code: "malformed", message }),
  signInNeeded: {
    status: 401,
    code: "sign_in_needed",
    message: "No session is open here, or it has ended.",
    remedy: "Sign in with a fresh link, or with the key.",
  },
  linkUsed: {
    status: 401,
    code: "link_used",
    message: "This link has been used, has expired, or is of another start of the console.",
    remedy: "Ask for a fresh link: it is printed where the console runs.",
  },
  wrongKey: {
    status: 401,
    code: "wrong_key",
    message: "The console does not know this key.",
    remedy: "Compare it with the setting of the console.",
  },
  crossOrigin: {
    status: 403,
    code: "cross_origin",
    message: "The request comes from a page of another origin.",
    remedy: "Open the console by its own address.",
  },
  tokenNeeded: {
    status: 403,
    code: "token_needed",
    message: "The request lacks the session's token.",
    remedy: "Sign in again in this browser.",
  },
  roleNeeded: {
    status: 403,
    code: "role_needed",
    message: "This session may read, and not act.",
    remedy: "Use the console on a listener of its own: coinslot console.",
  },
  confirmationNeeded: (confirmation: "key" | "code", words: string): Refusal => ({
    status: 403,
    code: "confirmation_needed",
    message: `A confirmation is needed: ${words}.`,
    remedy:
      confirmation === "key"
        ? "Enter the key of the console."
        : "Enter the code that is printed where the console runs.",
    details: { confirmation },
  }),
  wrongConfirmation: (confirmation: "key" | "code", attemptsLeft: number): Refusal => ({
    status: 403,
    code: "wrong_confirmation",
    message: "The confirmation is wrong. Nothing was changed.",
    remedy:
      attemptsLeft > 0
        ? `Compare it, and enter it again: ${attemptsLeft} left.`
        : "The session has ended: sign in again.",
    details: { confirmation, attemptsLeft },
  }),
  unknownOperation: {
    status: 404,
    code: "unknown_operation",
    message: "The console does not know this operation.",
    remedy: "GET api/openapi.json lists them.",
  },
  unknownPath: { status: 404, code: "unknown_path", message: "There is nothing here." },
  wrongMethod: { status: 405, code: "wrong_method", message: "Not by this method." },
  keyReused: {
    status: 409,
    code: "key_reused",
    message: "The idempotency key was used for another request.",
    remedy: "Draw a fresh key for each act.",
  },
  tooLarge: { status: 413, code: "too_large", message: "The request is too large." },
  unknownHost: {
    status: 421,
    code: "unknown_host",
    message: "The console does not answer under this name.",
    remedy:
      "Open it as localhost on the machine where it runs, or add this origin to its setting origins.",
  },
  tooManyAttempts: {
    status: 429,
    code: "too_many_attempts",
    message: "Too many wrong sign-ins from there.",
    remedy: "Wait for a minute. The right key is taken at any time.",
    retryAfterSeconds: 60,
  },
  tooManyStreams: {
    status: 429,
    code: "too_many_streams",
    message: "Too many pages of the console are open.",
    remedy: "Close some of them.",
    retryAfterSeconds: 30,
  },
  notBuilt: {
    status: 503,
    code: "not_built",
    message: "The pages of the console are not built.",
    remedy: "In a checkout: node scripts/run.mjs pages. The JSON API answers all the same.",
  },
  failed: {
    status: 503,
    code: "failed",
    message: "The console could not do it now.",
    remedy: "Its log says why.",
  },
} as const;
