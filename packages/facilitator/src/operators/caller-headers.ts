import type { IncomingHttpHeaders } from "node:http";
import type { OperatorCaller } from "../audit/audit-entry.ts";

/** Statements of a caller about itself, for the audit log. */
export type CallerWords = Pick<OperatorCaller, "account" | "idempotencyKey">;

const accountHeader = "coinslot-account";
const keyHeader = "coinslot-idempotency-key";
const maxLength = 500;

/** Headers of a call: percent-encoded, for names may have any letter. */
export function callerHeaders({ account, idempotencyKey }: CallerWords): Record<string, string> {
  return {
    ...(account === undefined ? {} : { [accountHeader]: encode(account) }),
    ...(idempotencyKey === undefined ? {} : { [keyHeader]: encode(idempotencyKey) }),
  };
}

export function readCallerHeaders(headers: IncomingHttpHeaders): CallerWords {
  return { account: decode(headers[accountHeader]), idempotencyKey: decode(headers[keyHeader]) };
}

function encode(text: string): string {
  return encodeURIComponent(Buffer.from(text.slice(0, maxLength)).toString());
}

function decode(header: string | string[] | undefined): string | undefined {
  if (typeof header !== "string") return undefined;
  try {
    return decodeURIComponent(header).slice(0, maxLength);
  } catch {
    return undefined;
  }
}
