import type { Address, Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import { type Insertable, sql, type Transaction } from "kysely";
import type { CodeGasTable } from "../code-schema.ts";
import type { LedgerReads } from "../ledger-context.ts";
import type { CodePayerLimits } from "../ledger-limits.ts";
import type { LedgerSchema } from "../schema.ts";
import { type CodeBudget, openRetryMs, readCodeBudget } from "./code-budget.ts";
import { type PayerRecord, readRecord, recordKey } from "./code-records.ts";
import type { LedgerPayment } from "./ledger-payment.ts";
import type { CodeLimit, ReserveRequest, ReserveResult } from "./reserve-request.ts";

/** Gas that a transaction for a payer with code has used, and that moved no money. */
export interface GasBurn {
  payer: Address;
  gas: bigint;
  /** True if the payer's code is the cause. The payer is then refused for a time. */
  isBlamed: boolean;
}

/** Multiple of the budget without a record, for payments that a record vouches for. */
const vouchedShare = 4n;
/** Places of one payer with code, at most. */
const maxPlaces = 16;

/** A payment, or a deposit into a channel, with the gas that it may burn. */
export type CodeRequest = Pick<ReserveRequest, "id" | "gasAtRisk">;

/** Reason against a payer with code, with the time for which it has to wait. */
export type CodeRefusal = Extract<ReserveResult, { outcome: "burnt_gas" | "code_limited" }>;

/** Decides on payments and deposits of payers with code, in the order of the requests. */
export interface CodeAdmission {
  /** `undefined` admits the payment. `known`: its state in the ledger, if it is there. */
  refuse(request: CodeRequest, known: LedgerPayment | undefined): CodeRefusal | undefined;
  /** Whether the payer's record vouches for a deposit, whose own row spends its gas. */
  isVouched(request: CodeRequest): boolean;
  /** Called with each admitted payment, once its row has an identity. */
  admitted(request: ReserveRequest, paymentId: string, known: LedgerPayment | undefined): void;
  /** Writes the spent gas. */
  store(): Promise<void>;
}

/**
 * Reads the records of the payers with code among these requests. No statement where there are
 * none.
 *
 * A payer has one place, and one more for each payment that was confirmed. An open payment takes a
 * place. So does one that ended without a transaction, until a minute after its reservation. So
 * places cannot be held by giving up.
 *
 * Confirmed payments vouch for as many places. A payment without such a voucher spends from the
 * network's budget, the rest from one four times as large. Spent is all gas of open payments. The
 * gas that a transaction has burnt for nothing, or beyond an ordinary call, is spent for a minute.
 * A confirmed payment gives back the rest, and one that no transaction ever carried all of it.
 *
 * Another sender may execute a payment after a transaction of ours has tried it in vain. It vouches
 * for nothing then. A record is one network's, and begins anew with every transaction that moved
 * nothing, unless another sender's stands before it.
 *
 * A deposit into a channel takes a place and gas as a payment does. It vouches for nothing: its
 * payer can take it back.
 *
 * The racers are reservations and deposits at other processes. A payer's own are decided under the
 * lock on its row, which the caller holds. The budget is decided under the lock on the network's
 * row, which is taken after those of payers.
 */
export async function readCodeAdmission(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  requests: readonly CodeRequest[];
  limits: CodePayerLimits;
}): Promise<CodeAdmission> {
  const { transaction, dialect, limits } = options;
  const requests = options.requests.filter(({ gasAtRisk }) => gasAtRisk !== undefined);
  const records = new Map<string, PayerRecord>();
  for (const { id } of requests) {
    if (records.has(recordKey(id))) continue;
    records.set(recordKey(id), await readRecord({ transaction, dialect, owner: id }));
  }
  const networks = [...new Set(requests.map(({ id }) => id.network))].sort();
  const budgets = new Map<Network, CodeBudget>();
  for (const network of networks) {
    budgets.set(network, await readCodeBudget({ transaction, dialect, network }));
  }
  const spent: Insertable<CodeGasTable>[] = [];

  /** Counts for and against a payment, without itself. */
  function availabilityOf({ id, gasAtRisk }: CodeRequest, known: LedgerPayment | undefined) {
    const record = records.get(recordKey(id));
    const budget = budgets.get(id.network);
    if (gasAtRisk === undefined || record === undefined || budget === undefined) return undefined;
    // A dead process's reservation of this very payment is open already, and so is its gas.
    const isCounted = known?.state === "reserved" && known.settlesAlone;
    const open = isCounted ? record.open - 1 : record.open;
    const own = isCounted ? budget.open.get(known.id) : undefined;
    const givenUpForMs = budget.givenUpForMs.get(id.payer) ?? [];
    const isVouched = open + givenUpForMs.length < record.confirmed;
    const part = isVouched ? budget.vouched : budget.unvouched;
    const counted = own?.isVouched === isVouched ? own.gas : 0n;
    return { record, budget, gasAtRisk, open, own, givenUpForMs, isVouched, part, counted };
  }

  return {
    refuse(request, known) {
      const availability = availabilityOf(request, known);
      if (availability === undefined) return undefined;
      const { record, budget, gasAtRisk, open, givenUpForMs, isVouched, part, counted } =
        availability;
      if (record.refusedForMs > 0) return { outcome: "burnt_gas", forMs: record.refusedForMs };
      const places = Math.min(maxPlaces, record.confirmed + 1);
      if (open >= places) return limited("too_many_open", openRetryMs);
      if (open + givenUpForMs.length >= places) {
        return limited("given_up", Math.min(...givenUpForMs));
      }
      // Its row in the budget is that of its last attempt, and does not serve a second one.
      const ended = known && budget.ended.get(known.id);
      if (ended) return limited(ended.why, ended.forMs);
      const most = isVouched ? vouchedShare * limits.gasPerMinute : limits.gasPerMinute;
      const isLeft = part.used - counted + gasAtRisk <= most;
      return isLeft ? undefined : limited("no_gas_left", part.nextMs);
    },
    isVouched: (request) => availabilityOf(request, undefined)?.isVouched ?? false,
    admitted(request, paymentId, known) {
      const availability = availabilityOf(request, known);
      if (availability === undefined) return;
      const { record, budget, gasAtRisk, open, own, isVouched, part } = availability;
      record.open = open + 1;
      if (own) (own.isVouched ? budget.vouched : budget.unvouched).used -= own.gas;
      part.used += gasAtRisk;
      spent.push({
        payment_id: paymentId,
        network: request.id.network,
        gas: Number(gasAtRisk),
        spent_at: budget.nowMs,
        is_vouched: isVouched ? 1 : 0,
        burnt: null,
      });
    },
    async store() {
      await dialect.insertMany<LedgerSchema, "code_gas">(transaction, "code_gas", spent, {
        keys: ["payment_id"],
        replace: ["network", "gas", "spent_at", "is_vouched", "burnt"],
      });
    },
  };
}

function limited(why: CodeLimit["why"], retryAfterMs: number): CodeRefusal {
  return { outcome: "code_limited", why, retryAfterMs };
}

/** The milliseconds for which a payer is still refused. `undefined` where it is not. */
export async function findRefusal(
  { db, dialect }: LedgerReads,
  payer: Address,
): Promise<number | undefined> {
  const row = await db
    .selectFrom("code_payers")
    .select(["refused_until", dialect.nowMs().as("now_ms")])
    .where("payer", "=", payer)
    .executeTakeFirst();
  const leftMs = row === undefined ? 0 : row.refused_until - row.now_ms;
  return leftMs > 0 ? leftMs : undefined;
}

/**
 * Resets a payer's record, and refuses it where it is to blame, for a time that each burn restarts.
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
