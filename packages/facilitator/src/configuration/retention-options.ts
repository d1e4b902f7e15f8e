import type { RetentionTimes } from "../ledger/ledger-limits.ts";
import type { FacilitatorOptions } from "./facilitator-options.ts";

const keptByDefault: Record<string, string> = {
  keepPaymentsDays: "; leave it out to keep every payment",
  keepUndeliveredDays: "; leave it out to keep every payment that was not delivered",
};

/** Reads how long payments, their signatures and undelivered ones are kept. */
export function readRetention({
  keepPaymentsDays,
  keepSignaturesDays = 30,
  keepUndeliveredDays,
}: FacilitatorOptions): { retention: RetentionTimes; problems: string[] } {
  const days = { keepPaymentsDays, keepSignaturesDays, keepUndeliveredDays };
  const problems = Object.entries(days)
    .filter(([, value]) => value !== undefined && !(value >= 1))
    .map(([name]) => `${name} must be at least 1${keptByDefault[name] ?? ""}`);
  // Whole: PostgreSQL compares them with whole numbers alone.
  const toMs = (value: number) => Math.round(value * 86_400_000);
  const forEver = Number.POSITIVE_INFINITY;
  const toEnd = (value = forEver) => (value === forEver ? undefined : toMs(value));
  const retention = {
    keepSignaturesMs: toMs(Math.min(keepSignaturesDays, keepPaymentsDays ?? forEver)),
    keepPaymentsMs: toEnd(keepPaymentsDays),
    keepUndeliveredMs: toEnd(keepUndeliveredDays),
  };
  return { retention, problems };
}
