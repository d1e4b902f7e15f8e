import { OperationRefusedError } from "@coinslot/facilitator";
import { ConfigurationError } from "@coinslot/protocol";
import * as z from "zod";
import { type Refusal, RefusedError, refusals } from "./refusal.ts";

const databaseErrorSchema = z.object({ name: z.literal("DatabaseError"), kind: z.string() });

/** Code and remedy of a ledger's fault, by the kind of its error. */
const ledgerFaults: Readonly<Record<string, { code: string; remedy: string }>> = {
  "file-locked": {
    code: "ledger_locked",
    remedy: "Another process holds the ledger, and does not serve its operator. Wait, or stop it.",
  },
  busy: { code: "ledger_locked", remedy: "Try again in a moment." },
  "older-schema": {
    code: "ledger_older",
    remedy:
      "A seller of this release brings the ledger up to date as it starts: start it, or wait until it is ready.",
  },
  "newer-schema": {
    code: "ledger_newer",
    remedy: "Start the console of the release that the seller runs.",
  },
  "foreign-schema": {
    code: "ledger_foreign",
    remedy: "Compare the console's ledger with the seller's.",
  },
  configuration: {
    code: "ledger_unreachable",
    remedy: "Compare the console's ledger with the seller's.",
  },
  unreachable: { code: "ledger_unreachable", remedy: "Look whether its database runs." },
  "connection-lost": { code: "ledger_unreachable", remedy: "Try again in a moment." },
  "file-replaced": {
    code: "ledger_replaced",
    remedy: "Restart the console: the ledger is another file now.",
  },
};

/** The refusal that an error of an operation is; `undefined` for one that only the log explains. */
export function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof RefusedError) return error.refusal;
  if (error instanceof OperationRefusedError) {
    const { code, message } = error;
    return { status: code === "malformed" ? 400 : 409, code, message };
  }
  if (error instanceof ConfigurationError) return refusals.malformed(error.message);
  if (!(error instanceof Error)) return undefined;
  const { message } = error;
  const fault = ledgerFaults[databaseErrorSchema.safeParse(error).data?.kind ?? ""];
  if (fault !== undefined) return { status: 503, message, ...fault, retryAfterSeconds: 5 };
  if (error.name !== "UnansweredError") return undefined;
  const remedy = "Look whether the seller runs. The page shows how old its figures are.";
  return { status: 503, code: "seller_gone", message, remedy, retryAfterSeconds: 5 };
}
