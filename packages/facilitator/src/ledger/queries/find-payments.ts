import { type AuthorizationId, authorizationKey } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import { type Kysely, sql } from "kysely";
import { isAlive } from "../maintenance/living-processes.ts";
import {
  type LedgerPayment,
  type PaymentRow,
  paymentColumns,
  toLedgerPayment,
} from "../payments/ledger-payment.ts";
import type { LedgerSchema } from "../schema.ts";

/** A payment, and its holder. */
export interface HeldPayment {
  payment: LedgerPayment;
  /** A request in a living process holds it. */
  isHeld: boolean;
  /** The process that held it last died with its token, and may have run the handler under it. */
  isAbandoned: boolean;
  /** That process has a row, whose heartbeat does not count. It may live all the same. */
  isSilent: boolean;
  /** Token of its last request, where that has not given it up. */
  token: string | null;
}

/** The payments of these authorizations, by `authorizationKey`. */
export async function findPayments(options: {
  db: Kysely<LedgerSchema>;
  dialect: Dialect;
  ids: readonly AuthorizationId[];
  heartbeatLeaseMs: number;
}): Promise<Map<string, HeldPayment>> {
  const { db, dialect, ids, heartbeatLeaseMs } = options;
  const rows = await db
    .selectFrom(
      // Copies of an authorization with another asset are distinguished below.
      dialect.rowsWith(
        db,
        "payments",
        ids.map(({ nonce, payer, network }) => ({ nonce, payer, network })),
      ),
    )
    .leftJoin("processes", "processes.id", "payments.owner")
    .select(columns)
    .select(isHeld(dialect, heartbeatLeaseMs))
    .select(["payments.token", "processes.id as holder"])
    .execute();
  return new Map(
    rows.map((row) => {
      const held = toHeldPayment(row, dialect);
      return [authorizationKey(held.payment.authorization), held];
    }),
  );
}

const columns = paymentColumns.map((column) => `payments.${column}` as const);

/** Returns whether a process held a token that lived when the transaction began, as 1 or 0. */
function isHeld(dialect: Dialect, heartbeatLeaseMs: number) {
  const lives = isAlive({ dialect, heartbeatLeaseMs });
  return sql<number>`case when payments.token is not null and ${lives} then 1 else 0 end`.as(
    "is_held",
  );
}

/** Reads a row that was selected with `isHeld` and its token. */
function toHeldPayment(
  row: PaymentRow & { is_held: number; token: string | null; holder: string | null },
  dialect: Dialect,
): HeldPayment {
  const isHeld = Number(row.is_held) === 1;
  const { token } = row;
  const isAbandoned = token !== null && !isHeld;
  const isSilent = isAbandoned && row.holder !== null;
  return { payment: toLedgerPayment(row, dialect), isHeld, isAbandoned, isSilent, token };
}
