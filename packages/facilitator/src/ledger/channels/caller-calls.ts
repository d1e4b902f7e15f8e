import type { Address, Hex, Network } from "@coinslot/protocol";
import { type Selectable, sql, type Transaction } from "kysely";
import type { CallerCallKind, CallerCallState, CallerCallsTable } from "../caller-calls-schema.ts";
import { forProcess, type LedgerContext, type LedgerReads } from "../ledger-context.ts";
import type { LedgerSchema } from "../schema.ts";
import type { TransactionState } from "../transactions-schema.ts";
import type { ChannelContract } from "./channel-state.ts";

/** Identity of a call that a caller asks for. Hex in lower case. */
export interface CallerCallKey extends ChannelContract {
  /** Hash of its content. */
  id: Hex;
}

/** A call of the escrow, as its transaction carries it. */
export interface NewCallerCall extends CallerCallKey {
  caller: string;
  kind: CallerCallKind;
  /** One call of a subject is `sent` at a time. */
  subject: string;
  /** Rows that were left out of a claim, in words. */
  leftOut: string | undefined;
}

/** A call of the ledger, with the standing of its transaction. */
export interface CallerCall extends NewCallerCall {
  state: CallerCallState;
  transactionId: string;
  /** `undefined` once it was forgotten. */
  transaction: { state: TransactionState; hash: Hex | undefined } | undefined;
  /** The transaction that has ended it, else the last form that was broadcast. */
  hash: Hex | undefined;
  /** Settled or refunded. */
  amount: bigint | undefined;
  /** Unix milliseconds. */
  createdAt: number;
}

/** Another request has sent the same call, or one of its subject, meanwhile: nothing is stored. */
export class CallTakenError extends Error {
  override readonly name = "CallTakenError";
}

/** As in the index's own condition. */
const isSent = sql<boolean>`caller_calls.state = 'sent'`;

/** A call by its id; `undefined` where the ledger has none. */
export async function readCall(
  reads: LedgerReads,
  { network, contract, id }: CallerCallKey,
): Promise<CallerCall | undefined> {
  const row = await selectCalls(reads)
    .where("caller_calls.network", "=", network)
    .where("caller_calls.contract", "=", contract)
    .where("caller_calls.id", "=", id)
    .executeTakeFirst();
  return row && toCall(row, reads);
}

/** The last call of a subject, in any state. */
export async function findLastCall(
  reads: LedgerReads,
  { network, contract, subject }: ChannelContract & { subject: string },
): Promise<CallerCall | undefined> {
  const row = await selectCalls(reads)
    .where("caller_calls.network", "=", network)
    .where("caller_calls.contract", "=", contract)
    .where("caller_calls.subject", "=", subject)
    .orderBy("caller_calls.created_at", "desc")
    .limit(1)
    .executeTakeFirst();
  return row && toCall(row, reads);
}

/**
 * Writes a call as `sent`, in the database transaction that stores its own: before anything is
 * broadcast. One that has ended is sent again, in place of the transaction that `replaces` names.
 *
 * The racers:
 * - the same request at another process, also where its call has ended meanwhile: the key lets one
 * write, and an ended call is replaced only as it was read;
 * - another call of the subject: an index has one that is sent.
 *
 * @throws CallTakenError where one of them was first; nothing is stored then
 */
export async function insertCall(
  { now }: Pick<LedgerContext, "now">,
  transaction: Transaction<LedgerSchema>,
  {
    transactionId,
    replaces,
    ...call
  }: NewCallerCall & { transactionId: string; replaces: string | undefined },
): Promise<void> {
  const { network, contract, subject } = call;
  const other = await transaction
    .selectFrom("caller_calls")
    .select("id")
    .where("network", "=", network)
    .where("contract", "=", contract)
    .where("subject", "=", subject)
    .where(isSent)
    .executeTakeFirst();
  if (other !== undefined) throw new CallTakenError("A call of this subject is under way");
  const written = {
    caller: call.caller,
    kind: call.kind,
    subject,
    state: "sent",
    transaction_id: transactionId,
    hash: null,
    amount: null,
    left_out: call.leftOut ?? null,
    created_at: now(),
    ended_at: null,
  } as const;
  const { numInsertedOrUpdatedRows } = await transaction
    .insertInto("caller_calls")
    .values({ network, contract, id: call.id, ...written })
    .onConflict((conflict) =>
      conflict
        .columns(["network", "contract", "id"])
        .doUpdateSet(written)
        .where("caller_calls.state", "!=", "sent")
        .where("caller_calls.transaction_id", "=", replaces ?? ""),
    )
    .executeTakeFirst();
  if (numInsertedOrUpdatedRows !== 1n) throw new CallTakenError("This call is under way");
}

/**
 * `sent` → `done`, `failed`, of the transaction that was looked at: one that another process has
 * sent meanwhile stays.
 */
export async function endCall(
  ledger: LedgerContext,
  { network, contract, id, transactionId }: CallerCall,
  end: { state: "done" | "failed"; hash: Hex | undefined; amount?: bigint | undefined },
): Promise<boolean> {
  const { encode } = ledger.dialect.amount;
  return ledger.write(async (transaction) => {
    const { numUpdatedRows } = await transaction
      .updateTable("caller_calls")
      .set({
        state: end.state,
        hash: end.hash ?? null,
        amount: end.amount === undefined ? null : encode(end.amount),
        ended_at: ledger.now(),
      })
      .where("network", "=", network)
      .where("contract", "=", contract)
      .where("id", "=", id)
      .where("transaction_id", "=", transactionId)
      .where(isSent)
      .executeTakeFirst();
    return numUpdatedRows === 1n;
  }, forProcess);
}

/** Deletes calls that have ended before a time. The chain remembers what they did. */
export async function forgetCalls(
  ledger: LedgerContext,
  { network, before }: { network: Network; before: number },
): Promise<void> {
  await ledger.write(
    (transaction) =>
      transaction
        .deleteFrom("caller_calls")
        .where("network", "=", network)
        .where("ended_at", "<", before)
        .execute(),
    forProcess,
  );
}

function selectCalls({ db }: LedgerReads) {
  return db
    .selectFrom("caller_calls")
    .leftJoin("transactions", "transactions.id", "caller_calls.transaction_id")
    .selectAll("caller_calls")
    .select(["transactions.state as transaction_state", "transactions.hash as included_hash"])
    .select(({ selectFrom }) =>
      selectFrom("broadcasts")
        .select("broadcasts.hash")
        .whereRef("broadcasts.transaction_id", "=", "caller_calls.transaction_id")
        .orderBy("broadcasts.created_at", "desc")
        .limit(1)
        .as("broadcast_hash"),
    );
}

interface CallRow extends Selectable<CallerCallsTable> {
  transaction_state: TransactionState | null;
  included_hash: Hex | null;
  broadcast_hash: Hex | null;
}

function toCall(row: CallRow, { dialect: { amount } }: LedgerReads): CallerCall {
  const { transaction_state: state, included_hash: hash } = row;
  const contract: Address = row.contract;
  return {
    network: row.network,
    contract,
    id: row.id,
    caller: row.caller,
    kind: row.kind,
    subject: row.subject,
    leftOut: row.left_out ?? undefined,
    state: row.state,
    transactionId: row.transaction_id,
    transaction: state === null ? undefined : { state, hash: hash ?? undefined },
    hash: row.hash ?? row.broadcast_hash ?? undefined,
    amount: row.amount === null ? undefined : amount.decode(row.amount),
    createdAt: row.created_at,
  };
}
