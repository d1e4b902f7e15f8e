import type { PaymentRecord } from "@coinslot/facilitator";

/** The columns of an export, in order. */
export const recordColumns = [
  "id",
  "state",
  "network",
  "asset",
  "payer",
  "nonce",
  "value",
  "amount",
  "transaction",
  "block",
  "reason",
  "createdAt",
  "submittedAt",
  "confirmedAt",
  "finalAt",
  "deliveredAt",
  "validBefore",
] as const satisfies readonly (keyof PaymentRecord)[];
