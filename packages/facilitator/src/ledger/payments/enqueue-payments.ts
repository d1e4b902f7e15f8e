import type { Address, SealedAnswer } from "@coinslot/protocol";
import type { Transaction } from "kysely";
import { batchPerLedger, maxAtOnce } from "../batch-per-ledger.ts";
import { forProcess, type LedgerContext } from "../ledger-context.ts";
import { selectAlive } from "../maintenance/living-processes.ts";
import type { LedgerSchema } from "../schema.ts";
import { is } from "../states.ts";
import type { AnswerName } from "./answer-quotas.ts";
import { evictAnswers, keepAnswers } from "./keep-answers.ts";
import { type LedgerPayment, paymentColumns, toLedgerPayment } from "./ledger-payment.ts";
import { insertOrders, orderRow, type TransferOrder } from "./transfer-order.ts";

/** A request to settle a reserved payment. */
export interface EnqueueRequest {
  /** Of the reservation. */
  token: string;
  payer: Address;
  order: TransferOrder;
  /** True if the handler has run: not where the money moves first. Default true. */
  hasRun?: boolean | undefined;
  answer?: SealedAnswer | undefined;
}

/** A payment that has just been queued, by its row, whatever the caller assumes. */
export type QueuedPayment = Pick<
  LedgerPayment,
  "id" | "value" | "validBefore" | "fingerprint" | "unusedAtBlock" | "attempts" | "settlesAlone"
>;

/**
 * The payment that this call queued, or its current state, if it was queued before, or is further.
 * `undefined`: the token holds nothing, or its process counts as dead.
 */
export type EnqueueResult = QueuedPayment | LedgerPayment | undefined;

/**
 * `reserved` → `queued`, together with the order, the answer to keep, and the handler's run. Calls
 * of one moment share their statements.
 *
 * The racer is a process that released a reservation because its owner's heartbeat stopped. The
 * token is gone then, the statement changes nothing for it, and the caller gets `undefined`.
 *
 * A ledger that was restored from a backup has such a token again. Another request may have had the
 * payment meanwhile, and the chain would show its execution for this one. So a token of another
 * process counts while that one lives. It was dead by the ledger's clock when its token was taken
 * away. The backup's heartbeat is no newer, and no process renews one that is older than its last.
 */
export const enqueuePayment = batchPerLedger(
  (ledger: LedgerContext, requests: readonly EnqueueRequest[]) =>
    ledger.write((transaction) => enqueuePayments(ledger, transaction, requests), forProcess),
  { maxItems: maxAtOnce },
);

async function enqueuePayments(
  ledger: LedgerContext,
  transaction: Transaction<LedgerSchema>,
  requests: readonly EnqueueRequest[],
): Promise<EnqueueResult[]> {
  const { dialect, keepAnswersMs, quotas, processId } = ledger;
  const now = ledger.now();
  const tokens = requests.map(({ token }) => token);
  const withoutRun = requests.flatMap(({ token, hasRun = true }) => (hasRun ? [] : token));
  const moved = await transaction
    .updateTable("payments")
    .set((set) => ({
      state: "queued",
      // A reservation of another process, where a gate reserves and settles at two of them.
      owner: processId,
      queued_at: now,
      runs:
        withoutRun.length === 0
          ? set("runs", "+", 1)
          : set
              .case()
              .when("token", "in", dialect.among(withoutRun))
              .then(set.ref("runs"))
              .else(set("runs", "+", 1))
              .end(),
    }))
    .where("token", "in", dialect.among(tokens))
    .where("state", "=", is("reserved"))
    .where((where) =>
      where.or([
        where("owner", "=", processId),
        where("owner", "in", selectAlive(ledger, transaction)),
      ]),
    )
    .returning([
      "token",
      "id",
      "value",
      "valid_before",
      "fingerprint",
      "unused_at_block",
      "carried",
      "is_alone",
    ])
    .execute();
  const results = new Map<string | null, EnqueueResult>(
    moved.map((row) => [
      row.token,
      {
        id: row.id,
        value: dialect.amount.decode(row.value),
        validBefore: dialect.amount.decode(row.valid_before),
        fingerprint: row.fingerprint,
        unusedAtBlock: row.unused_at_block ?? undefined,
        attempts: row.carried,
        settlesAlone: row.is_alone === 1,
      },
    ]),
  );
  const queued = requests.flatMap((request) => {
    const result = results.get(request.token);
    return result === undefined ? [] : [{ id: result.id, ...request }];
  });
  const orders = queued.map(({ id, order }) => orderRow(id, order, dialect));
  await insertOrders({ transaction, dialect, orders });
  const expiresAt = now + keepAnswersMs;
  const evicted: AnswerName[] = [];
  const answers = queued.flatMap(({ id, payer, answer }) => {
    if (answer === undefined) return [];
    const room = quotas.makeRoom(payer, answer, expiresAt);
    evicted.push(...room.evicted);
    return room.isKept ? [{ paymentId: id, payer, answer }] : [];
  });
  // First the evicted answers, which are older: a key of this very run may be among them.
  await evictAnswers({ transaction, answers: evicted });
  await keepAnswers({ transaction, dialect, expiresAt, answers });
  const others = tokens.filter((token) => !results.has(token));
  if (others.length > 0) {
    const rows = await transaction
      .selectFrom("payments")
      .select([...paymentColumns, "token"])
      .where("token", "in", dialect.among(others))
      // Of a dead process.
      .where("state", "!=", is("reserved"))
      .execute();
    for (const row of rows) results.set(row.token, toLedgerPayment(row, dialect));
  }
  return requests.map(({ token }) => results.get(token));
}
