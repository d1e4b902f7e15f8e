import { accounts } from "../../ledger/books-schema.ts";
import type { LedgerReads } from "../../ledger/ledger-context.ts";
import type { PaymentTimeline, TimelineStep } from "./timeline-result.ts";

type Facts = TimelineStep["facts"];
type Parts = Omit<PaymentTimeline, "steps"> & {
  /** The process that holds the payment, or held it last. */
  owner: string | null;
  queuedAt: string | null;
  closedAt: string | null;
};

/** Puts everything that has a time into one order. */
export async function listSteps(reads: LedgerReads, parts: Parts): Promise<TimelineStep[]> {
  const steps = [
    ...stepsOfPayment(parts),
    ...(await readReversals(reads, parts.payment.id)),
    ...(await readCommands(reads, parts.payment.id)),
    ...parts.refunds.flatMap(stepsOfRefund),
    ...parts.events.flatMap(stepsOfEvent),
  ];
  // Stable: equal times stay in the order of the way.
  return steps.sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0));
}

function step(
  at: string | null,
  kind: string,
  by: TimelineStep["by"] = null,
  facts: Record<string, string | number | null> = {},
): TimelineStep[] {
  if (at === null) return [];
  const known: Facts = {};
  for (const [name, fact] of Object.entries(facts)) if (fact !== null) known[name] = fact;
  return [{ at, kind, by, facts: known }];
}

function stepsOfPayment({ payment, owner, queuedAt, closedAt, transactions }: Parts) {
  const process = owner === null ? null : { kind: "process", name: owner };
  const [carrier] = transactions;
  const relayer = carrier ? { kind: "relayer", name: carrier.relayer } : null;
  const [first, ...replacements] = carrier?.forms ?? [];
  const inclusion = { transaction: payment.transaction, block: payment.block };
  const chain = { kind: "chain", name: payment.network };
  return [
    ...step(payment.createdAt, "reserved", process, { route: payment.route, wire: payment.wire }),
    ...step(queuedAt, "queued", process),
    ...step(payment.submittedAt, "submitted", relayer, {
      transaction: first?.hash ?? payment.transaction,
      nonce: carrier?.nonce ?? null,
    }),
    ...replacements.flatMap((form) =>
      step(form.signedAt, "replaced", relayer, { transaction: form.hash, content: form.content }),
    ),
    ...step(payment.confirmedAt, "confirmed", chain, inclusion),
    ...step(payment.finalAt, "final", chain),
    ...step(payment.deliveredAt, "delivered", process),
    ...step(closedAt, payment.state, chain, { reason: payment.reason }),
  ];
}

/** Times at which a reorganisation has taken the payment back, or its loss. The books keep each. */
async function readReversals({ db }: LedgerReads, id: string): Promise<TimelineStep[]> {
  const rows = await db
    .selectFrom("book_entries")
    .select(["posted_at", "network", "debit", "credit"])
    .where("source_id", "=", id)
    .where((where) =>
      where.or([
        where.and([where("debit", "=", accounts.income), where("credit", "=", accounts.wallet)]),
        where.and([where("debit", "=", accounts.losses), where("credit", "=", accounts.income)]),
      ]),
    )
    .orderBy("id")
    .limit(100)
    .execute();
  return rows.flatMap(({ posted_at, network, debit }) => {
    const kind = debit === accounts.losses ? "lost" : "reverted";
    return step(new Date(posted_at).toISOString(), kind, { kind: "chain", name: network });
  });
}

/** Acts of operators on the payment, and on its refunds. */
async function readCommands({ db }: LedgerReads, id: string): Promise<TimelineStep[]> {
  const rows = await db
    .selectFrom("audit_entries")
    .select(["at", "operation", "outcome", "actor", "account", "code"])
    .where("subject", "=", id)
    .where("outcome", "<>", "begun")
    .orderBy("seq")
    .limit(100)
    .execute();
  return rows.flatMap(({ at, operation, outcome, actor, account, code }) =>
    step(
      new Date(at).toISOString(),
      "command",
      { kind: "operator", name: account ?? actor },
      { operation, outcome, code },
    ),
  );
}

function stepsOfRefund(refund: Parts["refunds"][number]): TimelineStep[] {
  const { id, transaction, block } = refund;
  const origin = refund.origin === "operator" ? { kind: "operator", name: refund.origin } : null;
  const float = refund.float === null ? null : { kind: "float", name: refund.float };
  return [
    ...step(refund.createdAt, "refund-created", origin, { refund: id, reason: refund.reason }),
    ...step(refund.signedAt, "refund-signed", float, { refund: id }),
    ...step(refund.confirmedAt, "refund-confirmed", null, { refund: id, transaction, block }),
    ...step(refund.finalAt, "refund-final", null, { refund: id }),
  ];
}

function stepsOfEvent(event: Parts["events"][number]): TimelineStep[] {
  const { id, type, at, deliveries } = event;
  const ended = deliveries.flatMap(({ receiver, state, attempts, error, endedAt }) =>
    step(
      endedAt,
      `webhook-${state}`,
      { kind: "receiver", name: receiver },
      { event: id, type, attempts, error },
    ),
  );
  return [...step(at, "event", null, { event: id, type }), ...ended];
}
