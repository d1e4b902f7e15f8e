import type { LedgerReads } from "../../ledger/ledger-context.ts";
import { toIso } from "../wire-forms.ts";
import { decodeTransaction } from "./decode-transaction.ts";
import type { PaymentTimeline } from "./timeline-result.ts";

type TransactionRecord = PaymentTimeline["transactions"][number];

/** Payments of one transaction that are counted, at most. */
const maxCarried = 1_000;

/** A payment, or a refund's operation, whose transaction is read. */
export interface CarriedPayment {
  transactionId: string;
  payer: string;
  nonce: string;
}

/** The transaction that carries a payment, with its signed forms. Empty where it is pruned. */
export async function readTransaction(
  { db, dialect }: LedgerReads,
  carried: CarriedPayment,
): Promise<TransactionRecord[]> {
  const row = await db
    .selectFrom("transactions")
    .selectAll()
    .where("id", "=", carried.transactionId)
    .executeTakeFirst();
  if (row === undefined) return [];
  const forms = await db
    .selectFrom("broadcasts")
    .selectAll()
    .where("transaction_id", "=", row.id)
    .orderBy("created_at")
    .orderBy("max_fee_per_gas")
    .execute();
  const payments = await db
    .selectFrom("payments")
    .select("id")
    .where("transaction_id", "=", row.id)
    .limit(maxCarried)
    .execute();
  const { amount } = dialect;
  return [
    {
      id: row.id,
      network: row.network,
      relayer: row.relayer,
      nonce: row.nonce,
      state: row.state,
      createdAt: new Date(row.created_at).toISOString(),
      hash: row.hash,
      block: row.block_number,
      gasLimit: String(row.gas_limit),
      gasUsed: row.gas_used === null ? null : String(row.gas_used),
      gasCost: row.gas_cost === null ? null : amount.decode(row.gas_cost).toString(),
      payments: payments.length,
      forms: forms.map((form) => ({
        hash: form.hash,
        content: form.content,
        signedAt: toIso(form.created_at) ?? "",
        maxFeePerGas: amount.decode(form.max_fee_per_gas).toString(),
        maxPriorityFeePerGas:
          form.max_priority_fee_per_gas === null
            ? null
            : amount.decode(form.max_priority_fee_per_gas).toString(),
        isIncluded: form.hash === row.hash,
        message: decodeTransaction(form.raw, carried),
      })),
    },
  ];
}
