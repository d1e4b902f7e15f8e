import { sql, type Transaction } from "kysely";
import { amongNumbers, forProcess, type OutboxContext, tableOf, timeOf } from "./outbox-context.ts";

/** The end of an attempt: `released` was not posted, and counts as none. */
export type Conclusion = { seq: number; key: string } & (
  | { outcome: "delivered" | "released" }
  | { outcome: "failed"; error: string; retryInMs: number }
  | { outcome: "dead"; error: string }
);

/** Each outcome, as the table of deliveries has it afterwards. */
interface Concluding<Schema> {
  outbox: OutboxContext<Schema>;
  transaction: Transaction<Schema>;
  endpoint: string;
  claim: string;
}

/**
 * Ends claims of this process. A delivery that another process has claimed meanwhile is left alone.
 *
 * @returns numbers of the events whose claim was still held
 */
export async function concludeDeliveries<Schema>(
  outbox: OutboxContext<Schema>,
  { endpoint, claim }: { endpoint: string; claim: string },
  conclusions: readonly Conclusion[],
): Promise<number[]> {
  return outbox.write(async (transaction) => {
    const concluding = { outbox, transaction, endpoint, claim };
    const seqsOf = (outcome: Conclusion["outcome"]) =>
      conclusions.flatMap((each) => (each.outcome === outcome ? each.seq : []));
    const changed = await deliver(concluding, seqsOf("delivered"));
    changed.push(...(await release(concluding, seqsOf("released"))));
    for (const each of conclusions) changed.push(...(await fail(concluding, each)));
    const ended = new Set(
      conclusions.flatMap(({ outcome, key }) =>
        outcome === "delivered" || outcome === "dead" ? key : [],
      ),
    );
    await recall(concluding, [...ended]);
    return changed;
  }, forProcess);
}

async function deliver<Schema>(
  concluding: Concluding<Schema>,
  seqs: readonly number[],
): Promise<number[]> {
  const { outbox, transaction, endpoint, claim } = concluding;
  if (seqs.length === 0) return [];
  const { rows } = await sql<{ event_seq: number }>`
    update ${tableOf(outbox, "deliveries")}
    set state = 'delivered', claim = null, error = null, attempts = attempts + 1,
      ended_at = ${timeOf(outbox)}
    where endpoint_id = ${endpoint} and event_seq in ${amongNumbers(outbox.dialect, seqs)}
      and state = 'pending' and claim = ${claim}
    returning event_seq
  `.execute(transaction);
  return rows.map(({ event_seq }) => event_seq);
}

async function release<Schema>(
  concluding: Concluding<Schema>,
  seqs: readonly number[],
): Promise<number[]> {
  const { outbox, transaction, endpoint, claim } = concluding;
  if (seqs.length === 0) return [];
  const { rows } = await sql<{ event_seq: number }>`
    update ${tableOf(outbox, "deliveries")} set claim = null, next_at = 0
    where endpoint_id = ${endpoint} and event_seq in ${amongNumbers(outbox.dialect, seqs)}
      and state = 'pending' and claim = ${claim}
    returning event_seq
  `.execute(transaction);
  return rows.map(({ event_seq }) => event_seq);
}

/** Failures have a time and a cause each. There are few, since each waits for seconds. */
async function fail<Schema>(
  { outbox, transaction, endpoint, claim }: Concluding<Schema>,
  conclusion: Conclusion,
): Promise<number[]> {
  if (conclusion.outcome !== "failed" && conclusion.outcome !== "dead") return [];
  const change =
    conclusion.outcome === "dead"
      ? sql`state = 'dead', ended_at = ${timeOf(outbox)}`
      : sql`next_at = ${timeOf(outbox)} + cast(${conclusion.retryInMs} as bigint)`;
  const { rows } = await sql<{ event_seq: number }>`
    update ${tableOf(outbox, "deliveries")}
    set ${change}, claim = null, error = ${conclusion.error}, attempts = attempts + 1
    where endpoint_id = ${endpoint} and event_seq = ${conclusion.seq}
      and state = 'pending' and claim = ${claim}
    returning event_seq
  `.execute(transaction);
  return rows.map(({ event_seq }) => event_seq);
}

/** Deliveries that waited for these keys are due. */
async function recall<Schema>(
  { outbox, transaction, endpoint }: Concluding<Schema>,
  keys: readonly string[],
): Promise<void> {
  if (keys.length === 0) return;
  await sql`
    update ${tableOf(outbox, "deliveries")} set next_at = 0
    where endpoint_id = ${endpoint} and key in ${outbox.dialect.among(keys)}
      and state = 'pending' and claim is null and attempts = 0 and next_at > 0
  `.execute(transaction);
}
