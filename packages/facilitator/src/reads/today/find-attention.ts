import { listEndpoints } from "@coinslot/storage";
import { type SqlBool, sql } from "kysely";
import type { LedgerReads } from "../../ledger/ledger-context.ts";
import { readStops } from "../../ledger/maintenance/stops.ts";
import { is } from "../../ledger/states.ts";
import { type AttentionCode, attentionCodes } from "./attention-codes.ts";
import type { Attention } from "./today-result.ts";

const minuteMs = 60_000;
const stuckMs = 10 * minuteMs;
const lateWebhookMs = 10 * minuteMs;
const lateRefundMs = 60 * minuteMs;
const dayMs = 86_400_000;
/** A month and some days: books are closed by the month. */
const unclosedMs = 38 * dayMs;
/** A loss is shown for this long. */
const reorganisedMs = 30 * dayMs;
const maxRefunds = 10_000;

/** One thing that needs a person. */
export function attention(
  code: AttentionCode,
  facts: Partial<Omit<Attention, "code" | "urgency" | "runbook">> = {},
): Attention {
  const nothing = { network: null, subject: null, count: 1, since: null, detail: null };
  return { code, ...attentionCodes[code], ...nothing, ...facts };
}

/** Puts the most urgent first. */
export function byUrgency(found: readonly Attention[]): Attention[] {
  const codes = Object.keys(attentionCodes);
  const rank = ({ code }: Attention) => codes.indexOf(code);
  return [...found].sort((one, other) => rank(one) - rank(other));
}

/** Everything in the ledger that needs a person. */
export async function findInLedger(reads: LedgerReads, now: number): Promise<Attention[]> {
  return [
    ...(await findReorganised(reads, now)),
    ...(await findStuck(reads, now)),
    ...(await findRefunds(reads, now)),
    ...(await findWebhooks(reads)),
    ...(await findStops(reads)),
    ...(await findUnclosed(reads, now)),
  ];
}

/** Final payments that a reorganisation has taken back, and that are not paid again. */
async function findReorganised({ db }: LedgerReads, now: number): Promise<Attention[]> {
  const rows = await db
    .selectFrom("deep_reversals")
    .innerJoin("payments", "payments.id", "payment_id")
    .select("payments.network")
    .select((select) => [
      select.fn.countAll().as("count"),
      select.fn.count("closed_at").as("lost"),
      select.fn.min("reversed_at").as("oldest"),
    ])
    .where("state", "<>", is("confirmed"))
    .where("reversed_at", ">", now - reorganisedMs)
    .groupBy("payments.network")
    .execute();
  return rows.map(({ network, count, lost, oldest }) =>
    attention("final_reorganised", {
      network,
      count: Number(count),
      since: new Date(Number(oldest)).toISOString(),
      detail: `${Number(lost)} lost, ${Number(count) - Number(lost)} under way`,
    }),
  );
}

/** By the indexes of open transactions and of queued payments: these are few. */
async function findStuck({ db }: LedgerReads, now: number): Promise<Attention[]> {
  const open = await db
    .selectFrom("transactions")
    .select(["network", "relayer"])
    .select((select) => [
      select.fn.countAll().as("count"),
      select.fn.min("created_at").as("oldest"),
    ])
    .where("state", "=", is("open"))
    .where("created_at", "<", now - stuckMs)
    .groupBy(["network", "relayer"])
    .execute();
  const queued = await db
    .selectFrom("payments")
    .select("network")
    .select((select) => [select.fn.countAll().as("count"), select.fn.min("queued_at").as("oldest")])
    .where("state", "=", is("queued"))
    .where("queued_at", "<", now - stuckMs)
    .groupBy("network")
    .execute();
  return [
    ...open.map(({ network, relayer, count, oldest }) =>
      attention("transaction_stuck", {
        network,
        subject: relayer,
        count: Number(count),
        since: new Date(Number(oldest)).toISOString(),
      }),
    ),
    ...queued.map(({ network, count, oldest }) =>
      attention("queue_stuck", {
        network,
        count: Number(count),
        since: new Date(Number(oldest)).toISOString(),
      }),
    ),
  ];
}

/** The very condition of their index. */
const isOpenRefund = sql<SqlBool>`state not in ('final', 'void')`;

/** By the index of refunds that are not ended. */
async function findRefunds({ db }: LedgerReads, now: number): Promise<Attention[]> {
  const rows = await db
    .selectFrom("refunds")
    .select(["network", "state", "cause", "created_at"])
    .where(isOpenRefund)
    .orderBy("next_at")
    .limit(maxRefunds)
    .execute();
  const found = new Map<string, Attention>();
  for (const { network, state, cause, created_at } of rows) {
    const isLate = created_at < now - lateRefundMs;
    const code = codeOfRefund(state, cause) ?? (isLate ? "refunds_late" : undefined);
    const isInBlock = state === "confirmed" && cause !== "chain";
    if (code === undefined || isInBlock) continue;
    const key = `${code}/${network}`;
    const since = new Date(created_at).toISOString();
    const known = found.get(key) ?? attention(code, { network, count: 0 });
    known.count += 1;
    if (known.since === null || since < known.since) {
      known.since = since;
      known.detail = code === "refunds_late" ? cause : null;
    }
    found.set(key, known);
  }
  return [...found.values()];
}

function codeOfRefund(state: string, cause: string | null): AttentionCode | undefined {
  switch (state) {
    case "review":
      return "refunds_review";
    case "unsigned":
      return "refunds_unsigned";
    case "blocked":
      return "refunds_blocked";
    case "manual":
      return "refunds_manual";
    case "waiting":
      if (cause === "float_balance" || cause === "no_float") return "float_low";
      return cause === "daily_limit" ? "refunds_limited" : undefined;
    default:
      return undefined;
  }
}

async function findWebhooks(reads: LedgerReads): Promise<Attention[]> {
  const receivers = await listEndpoints(reads);
  return receivers.flatMap(({ id, pending, dead, oldestPendingMs = 0 }) => [
    ...(dead > 0 ? [attention("webhooks_dead", { subject: id, count: dead })] : []),
    ...(oldestPendingMs > lateWebhookMs
      ? [attention("webhooks_late", { subject: id, count: pending })]
      : []),
  ]);
}

async function findStops(reads: LedgerReads): Promise<Attention[]> {
  const stops = await readStops(reads);
  return stops.map(({ kind, name, reason, stoppedAt }) =>
    attention(kind === "float" ? "refunds_stopped" : "payments_stopped", {
      network: kind === "network" ? name : null,
      subject: name,
      since: new Date(stoppedAt).toISOString(),
      detail: reason,
    }),
  );
}

/** The oldest entry after the last closed period. */
async function findUnclosed({ db }: LedgerReads, now: number): Promise<Attention[]> {
  const closed = await db
    .selectFrom("book_periods")
    .select((select) => select.fn.max("closed_to").as("to"))
    .executeTakeFirst();
  // Books that were never closed are kept without periods.
  if (!closed?.to) return [];
  const oldest = await db
    .selectFrom("book_entries")
    .select("posted_at")
    .where("posted_at", ">=", Number(closed.to))
    .orderBy("posted_at")
    .limit(1)
    .executeTakeFirst();
  if (oldest === undefined || oldest.posted_at > now - unclosedMs) return [];
  const since = new Date(Number(closed.to)).toISOString();
  return [attention("books_unclosed", { since })];
}
