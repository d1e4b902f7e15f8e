import type { Address, AuthorizationId, Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import { type Insertable, type Kysely, sql, type Transaction } from "kysely";
import type { LedgerPayment } from "./ledger-payment.ts";
import { type CodeGasTable, type LedgerSchema, openStates } from "./ledger-schema.ts";
import type { ReserveRequest, ReserveResult } from "./reserve-request.ts";
import { is } from "./states.ts";

/** How much is risked on payers with code: contracts, and accounts that delegate to one (EIP-7702). */
export interface CodePayerLimits {
  /** Gas that those without a record may have at risk in a minute, on each network. */
  gasPerMinute: bigint;
  /** How long one that has burnt gas is refused, everywhere. */
  refusalMs: number;
}

export const defaultCodePayerLimits: CodePayerLimits = {
  gasPerMinute: 4_000_000n,
  refusalMs: 24 * 3_600_000,
};

/** Gas that a transaction for a payer with code has used, and that moved no money. */
export interface GasBurn {
  payer: Address;
  gas: bigint;
  /** Whether it is the doing of the payer's code: then the payer is refused for a time. */
  isBlamed: boolean;
}

const windowMs = 60_000;
/** An open payment gives its gas back when it is confirmed, which takes a few blocks. */
const openRetryMs = 2_000;
/** Open payments of one payer with code, at most; more confirmed ones than this are not counted. */
const maxOpen = 16;

/** Decides for payments of payers with code, in the order in which they are asked about. */
export interface CodeAdmission {
  /** `undefined` admits the payment. `known`: as it stands in the ledger, if it does. */
  refuse(request: ReserveRequest, known: LedgerPayment | undefined): ReserveResult | undefined;
  /** To be called with what was admitted, once its row has an identity. */
  admitted(request: ReserveRequest, paymentId: string): void;
  /** Writes what was spent. */
  store(): Promise<void>;
}

/**
 * Reads what is to be known of the payers with code among these requests; no statement where there are none.
 *
 * A payer may have one open payment, and one more for each that was confirmed. Confirmed payments vouch for as
 * many open ones. What nothing vouches for is spent from the network's budget: the gas of payments that are
 * open, and of those that a transaction carried for nothing, a minute long. A confirmed payment gives back
 * what it took, and so does one that no transaction ever carried. A record is one network's, and begins anew
 * with every transaction that moved nothing.
 *
 * The racers are reservations of other processes. A payer's own are decided under the lock on its row, which
 * the caller holds; the budget under the lock on the network's row, which is taken after those of payers.
 */
export async function readCodeAdmission(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  requests: readonly ReserveRequest[];
  limits: CodePayerLimits;
}): Promise<CodeAdmission> {
  const { transaction, dialect, limits } = options;
  const requests = options.requests.filter(({ gasAtRisk }) => gasAtRisk !== undefined);
  const records = new Map<string, PayerRecord>();
  for (const { id } of requests) {
    if (recordOf(id)) continue;
    records.set(recordKey(id), await readRecord({ transaction, dialect, id }));
  }
  const networks = [...new Set(requests.filter(isUnvouched).map(({ id }) => id.network))].sort();
  const budgets = new Map<Network, Budget>();
  for (const network of networks) {
    budgets.set(network, await readBudget({ transaction, dialect, network }));
  }
  const spent: Insertable<CodeGasTable>[] = [];

  /** Whether it may need the budget, by what is known before the first of these requests is decided. */
  function isUnvouched({ id }: ReserveRequest): boolean {
    const record = recordOf(id);
    const count = requests.filter((other) => recordOf(other.id) === record).length;
    return record !== undefined && record.open + count > record.confirmed;
  }

  function recordOf(id: AuthorizationId): PayerRecord | undefined {
    return records.get(recordKey(id));
  }

  return {
    refuse({ id, gasAtRisk }, known) {
      const record = recordOf(id);
      if (gasAtRisk === undefined || record === undefined) return undefined;
      if (record.refusedForMs > 0) return { outcome: "burnt_gas", forMs: record.refusedForMs };
      // A dead process's reservation of this very payment is open already.
      const isCounted = known?.state === "reserved" && known.isAlone;
      const open = isCounted ? record.open - 1 : record.open;
      if (open >= Math.min(maxOpen, record.confirmed + 1)) {
        return { outcome: "code_limited", why: "too_many_open", retryAfterMs: 2_000 };
      }
      const budget = budgets.get(id.network);
      if (open < record.confirmed || budget === undefined) return undefined;
      // Its row in the budget is that of its last transaction, and is not to be had for a second one.
      const burntForMs = known && budget.burntForMs.get(known.id);
      if (burntForMs !== undefined) {
        return { outcome: "code_limited", why: "no_gas_left", retryAfterMs: burntForMs };
      }
      if (budget.used + gasAtRisk <= limits.gasPerMinute) return undefined;
      return { outcome: "code_limited", why: "no_gas_left", retryAfterMs: budget.nextMs };
    },
    admitted({ id, gasAtRisk }, paymentId) {
      const record = recordOf(id);
      if (gasAtRisk === undefined || record === undefined) return;
      record.open += 1;
      const budget = budgets.get(id.network);
      if (record.open <= record.confirmed || budget === undefined) return;
      budget.used += gasAtRisk;
      const { network } = id;
      const { nowMs } = budget;
      spent.push({ payment_id: paymentId, network, gas: Number(gasAtRisk), spent_at: nowMs });
    },
    async store() {
      await dialect.insertMany<LedgerSchema, "code_gas">(transaction, "code_gas", spent, {
        keys: ["payment_id"],
        replace: ["network", "gas", "spent_at"],
      });
    },
  };
}

interface PayerRecord {
  /** 0 where it is not refused. */
  refusedForMs: number;
  /** Its open payments that may burn gas. */
  open: number;
  /** Its payments that were confirmed since a transaction for it moved nothing, if one did. */
  confirmed: number;
}

/** What a payer has paid on one network says nothing of another, where its tokens may be worth nothing. */
function recordKey({ network, payer }: AuthorizationId): string {
  return `${network}/${payer}`;
}

async function readRecord(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  id: AuthorizationId;
}): Promise<PayerRecord> {
  const { transaction, dialect } = options;
  const { network, payer } = options.id;
  const burner = await transaction
    .selectFrom("code_payers")
    .select(["refused_until", dialect.nowMs().as("now_ms")])
    .where("payer", "=", payer)
    .executeTakeFirst();
  const open = await transaction
    .selectFrom("payments")
    .select(({ fn }) => fn.countAll().as("count"))
    .where("payer", "=", payer)
    .where("network", "=", network)
    .where("state", "in", openStates)
    .where("is_alone", "=", 1)
    .executeTakeFirst();
  const newest = await transaction
    .selectFrom("payments")
    .select("confirmed_at")
    .where("payer", "=", payer)
    .where("network", "=", network)
    .where("state", "=", is("confirmed"))
    .orderBy("block_number", "desc")
    .limit(maxOpen)
    .execute();
  const since = burner?.refused_until ?? 0;
  return {
    refusedForMs: burner === undefined ? 0 : Math.max(0, burner.refused_until - burner.now_ms),
    open: Number(open?.count ?? 0),
    confirmed: newest.filter(({ confirmed_at }) => (confirmed_at ?? 0) >= since).length,
  };
}

interface Budget {
  used: bigint;
  nowMs: number;
  /** Until something is given back, as far as is known. */
  nextMs: number;
  /** The payments that a transaction carried for nothing, with the time until each gives back what it took. */
  burntForMs: Map<string, number>;
}

async function readBudget(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  network: Network;
}): Promise<Budget> {
  const { transaction, dialect, network } = options;
  await dialect.insertMany<LedgerSchema, "code_budgets">(
    transaction,
    "code_budgets",
    [{ network }],
    "ignore",
  );
  const locked = await transaction
    .selectFrom("code_budgets")
    .select(dialect.nowMs().as("now_ms"))
    .where("network", "=", network)
    .$call(dialect.forUpdate)
    .executeTakeFirstOrThrow();
  const nowMs = locked.now_ms;
  const rows = await transaction
    .selectFrom("code_gas")
    .leftJoin("payments", "payments.id", "code_gas.payment_id")
    .select(["payment_id", "gas", "spent_at", "state", "carried", "submitted_at"])
    .where("code_gas.network", "=", network)
    .execute();
  const budget: Budget = { used: 0n, nowMs, nextMs: windowMs, burntForMs: new Map() };
  const over: string[] = [];
  for (const { payment_id, gas, spent_at, state, carried, submitted_at } of rows) {
    const isOpen = state === "reserved" || state === "queued" || state === "submitted";
    const isBurnt = state === "failed" && (carried ?? 0) > 0;
    // A handler may have run for long: the gas is burnt once a transaction carries the payment.
    const leftMs = Math.max(spent_at, submitted_at ?? 0) + windowMs - nowMs;
    if (isOpen || (isBurnt && leftMs > 0)) {
      budget.used += BigInt(gas);
      budget.nextMs = Math.min(budget.nextMs, isOpen ? openRetryMs : leftMs);
      if (isBurnt) budget.burntForMs.set(payment_id, leftMs);
    } else over.push(payment_id);
  }
  if (over.length > 0) {
    await transaction
      .deleteFrom("code_gas")
      .where("payment_id", "in", dialect.among(over))
      .execute();
  }
  return budget;
}

/** The milliseconds for which a payer is still refused; `undefined` where it is not. */
export async function findRefusal(options: {
  db: Kysely<LedgerSchema>;
  dialect: Dialect;
  payer: Address;
}): Promise<number | undefined> {
  const { db, dialect, payer } = options;
  const row = await db
    .selectFrom("code_payers")
    .select(["refused_until", dialect.nowMs().as("now_ms")])
    .where("payer", "=", payer)
    .executeTakeFirst();
  const leftMs = row === undefined ? 0 : row.refused_until - row.now_ms;
  return leftMs > 0 ? leftMs : undefined;
}

/**
 * Lets a payer's record begin anew, and refuses it where it is to blame, for a time that begins anew with each burn.
 */
export async function recordBurn(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  burn: GasBurn;
  refusalMs: number;
}): Promise<void> {
  const { transaction, dialect, burn, refusalMs } = options;
  const until = sql<number>`${dialect.nowMs()} + ${sql.lit(burn.isBlamed ? refusalMs : 0)}`;
  const gas = Number(burn.gas);
  await transaction
    .insertInto("code_payers")
    .values({ payer: burn.payer, refused_until: until, gas_burnt: gas })
    .onConflict((conflict) =>
      conflict.column("payer").doUpdateSet((set) => ({
        refused_until: set
          .case()
          .when("code_payers.refused_until", ">", until)
          .then(set.ref("code_payers.refused_until"))
          .else(until)
          .end(),
        gas_burnt: set("code_payers.gas_burnt", "+", gas),
      })),
    )
    .execute();
}
