/** Problems of the `Payment` scheme that a seller answers, with their titles (RFC 9457). */
const titles = {
  "payment-required": "Payment required",
  "malformed-credential": "Malformed credential",
  "invalid-challenge": "Invalid challenge",
  "payment-expired": "Payment expired",
  "verification-failed": "Verification failed",
  "payment-insufficient": "Payment insufficient",
} as const;

/** The last part of a problem's type. */
export type ProblemName = keyof typeof titles;

/** The members of a problem, as RFC 9457 has them. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
}

/** Media type of a body whose members are a problem's. */
export const problemMediaType = "application/problem+json";

/** Writes a problem of status 402. */
export function paymentProblem(name: ProblemName, detail: string): Problem {
  const type = `https://paymentauth.org/problems/${name}`;
  return { type, title: titles[name], status: 402, detail };
}
