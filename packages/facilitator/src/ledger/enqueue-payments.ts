import type { Address, SealedAnswer } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Transaction } from "kysely";
import { isHeld, toHeldPayment } from "./find-payments.ts";
import { keepAnswers } from "./keep-answers.ts";
import type { LedgerPayment } from "./ledger-payment.ts";
import type { LedgerSchema } from "./ledger-schema.ts";
import { insertOrders, type Order, orderRow } from "./order.ts";
import { is } from "./states.ts";

/** A wish to have a reserved payment settled. */
export interface EnqueueRequest {
  /** Of the reservation. */
  token: string;
  payer: Address;
  order: Order;
  isAlone?: boolean | undefined;
  answer?: SealedAnswer | undefined;
}

/** The payment as it stands now: queued by this call or before, or further. `undefined`: the token holds nothing. */
export type EnqueueResult = LedgerPayment | undefined;

/**
 * `reserved` → `queued`, for many at once, together with what is to be executed and the answers to
 * keep. The racer is whoever released a reservation because its owner's heart stopped: then the
 * token is gone, the statement changes nothing for it, and the caller hears `undefined`.
 */
export async function enqueuePayments(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  requests: readonly EnqueueRequest[];
  /** Unix milliseconds. */
  now: number;
  keepAnswersMs: number;
}): Promise<EnqueueResult[]> {
  const { transaction, dialect, requests, now, keepAnswersMs } = options;
  const tokens = requests.map(({ token }) => token);
  const moved = await transaction
    .updateTable("payments")
    .set({ state: "queued", queued_at: now })
    .where("token", "in", dialect.among(tokens))
    .where("state", "=", is("reserved"))
    .returning(["token", "id"])
    .execute();
  const idByToken = new Map(moved.map(({ token, id }) => [token, id]));
  const queued = requests.flatMap((request) => {
    const id = idByToken.get(request.token);
    return id === undefined ? [] : [{ id, ...request }];
  });
  const orders = queued.map(({ id, order }) => orderRow(id, order, dialect));
  await insertOrders({ transaction, dialect, orders });
  const alone = queued.filter(({ isAlone }) => isAlone).map(({ id }) => id);
  if (alone.length > 0) {
    await transaction
      .updateTable("payments")
      .set({ is_alone: 1 })
      .where("id", "in", alone)
      .execute();
  }
  await keepAnswers({
    transaction,
    dialect,
    expiresAt: now + keepAnswersMs,
    answers: queued.flatMap(({ id, payer, answer }) =>
      answer ? [{ paymentId: id, payer, answer }] : [],
    ),
  });
  const rows = await transaction
    .selectFrom("payments")
    .leftJoin("processes", "processes.id", "payments.owner")
    .selectAll("payments")
    .select(isHeld(dialect, 0))
    .where("token", "in", dialect.among(tokens))
    .execute();
  const payments = new Map(rows.map((row) => [row.token, toHeldPayment(row, dialect).payment]));
  return requests.map(({ token }) => payments.get(token));
}
