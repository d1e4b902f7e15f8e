import {
  type Challenge,
  decodePaymentReceipt,
  headerName,
  type PaymentReceipt,
  parseChallenges,
} from "@coinslot/protocol";

/**
 * Statuses of an answer to a credential. 402 says that it buys nothing; the others keep it good.
 */
const statuses: ReadonlySet<number> = new Set([200, 402, 409, 429, 500, 503]);

/**
 * The receipt of an answer to a credential; `undefined` where there is none, or none can be read.
 */
export function mppReceiptOf(headers: Headers): PaymentReceipt | undefined {
  try {
    return decodePaymentReceipt(headers.get(headerName.paymentReceipt) ?? "");
  } catch {
    return undefined;
  }
}

/**
 * Faults of an answer to a credential. Its challenge comes while the money may still move, is
 * missing where it cannot, or is the same one again. Its receipt is missing, of another challenge,
 * or of a failure.
 */
export function findMppFaults(
  { status, headers }: Pick<Response, "status" | "headers">,
  { id }: Challenge,
): string[] {
  const faults: string[] = [];
  const challenges = parseChallenges(headers.get(headerName.authenticate) ?? "");
  const hasReceipt = headers.has(headerName.paymentReceipt);
  if (!statuses.has(status)) faults.push(`status ${status} to a credential`);
  if (status === 402) {
    const isFresh = challenges.every((read) => read.ok && read.challenge.id !== id);
    if (challenges.length === 0 || !isFresh) faults.push("402 without a fresh challenge");
  } else if (challenges.length > 0) {
    faults.push(`status ${status} asks for another payment`);
  }
  if (status === 200 && mppReceiptOf(headers)?.challengeId !== id) {
    faults.push("an answer without the receipt of its challenge");
  }
  if (status !== 200 && hasReceipt) faults.push(`status ${status} has a receipt`);
  if (headers.has(headerName.paymentResponse) || headers.has(headerName.paymentResponseV1)) {
    faults.push("a receipt of x402 for a payment by MPP");
  }
  return faults;
}
