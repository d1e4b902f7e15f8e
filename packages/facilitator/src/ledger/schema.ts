import type {
  Address,
  Hex,
  Network,
  PaymentKind,
  SettleErrorReason,
  WireName,
} from "@coinslot/protocol";
import type { StoredAmount } from "@coinslot/storage";
import type { Generated } from "kysely";
import type { AuditEntriesTable } from "./audit-schema.ts";
import type { BookTables } from "./books-schema.ts";
import type { CallerTables } from "./caller-calls-schema.ts";
import type { ChannelBookTables } from "./channel-books-schema.ts";
import type { ChannelChainTables } from "./channel-chain-schema.ts";
import type {
  ChannelAnswersTable,
  ChannelDuesTable,
  ChannelsTable,
  ChannelTermsTable,
} from "./channels-schema.ts";
import type {
  CodeBudgetsTable,
  CodeGasTable,
  CodePayersTable,
  CodeRecordsTable,
} from "./code-schema.ts";
import type { LossTables } from "./losses-schema.ts";
import type { RefundablePaymentsTable, RefundsTable } from "./refunds-schema.ts";
import type {
  PaymentChangesTable,
  PaymentSumsProgressTable,
  PaymentSumsTable,
  UnpaidPaymentsTable,
} from "./sums-schema.ts";
import type { BroadcastsTable, TransactionsTable } from "./transactions-schema.ts";
import type { VisitsTable } from "./visits-schema.ts";

/** State of a payment. README.md beside this file lists the possible transitions. */
export type PaymentState =
  | "reserved"
  | "queued"
  | "submitted"
  | "confirmed"
  | "failed"
  | "expired"
  | "released";

/** Every state, in the order of a payment's way. */
export const paymentStates = [
  "reserved",
  "queued",
  "submitted",
  "confirmed",
  "failed",
  "expired",
  "released",
] as const satisfies readonly PaymentState[];

/** The states in which an amount is committed and not yet seen in a block. */
export const openStates = ["reserved", "queued", "submitted"] as const;

/** One row per authorization, whatever its wire. */
export interface PaymentsTable {
  /** Sorts by time of creation. */
  id: string;
  network: Network;
  asset: Address;
  /** The contract that uses the nonce up; `null`: the asset itself. */
  authority: Address | null;
  payer: Address;
  nonce: Hex;
  value: StoredAmount;
  valid_before: StoredAmount;
  state: PaymentState;
  fingerprint: string;
  key_hash: string | null;
  /** Held by the request that runs for it now, or ran when its process died. */
  token: string | null;
  /** The process that holds the token. */
  owner: string | null;
  /** At the end of this block the authorization was unused; a foreign execution comes after it. */
  unused_at_block: number | null;
  /** The transaction that carries it, or carried it last. */
  transaction_id: string | null;
  /** Number of transactions that have carried it. */
  carried: number;
  /**
   * Number of requests that ended after a handler run for it, or left its token with their process.
   */
  runs: Generated<number>;
  /** 1: it must not share a transaction with others. */
  is_alone: number;
  block_number: number | null;
  block_hash: Hex | null;
  transaction_hash: Hex | null;
  reason: SettleErrorReason | null;
  created_at: number;
  queued_at: number | null;
  submitted_at: number | null;
  confirmed_at: number | null;
  final_at: number | null;
  delivered_at: number | null;
  /** Failed, and nothing can change that any more. */
  closed_at: number | null;
  scheme: Generated<PaymentKind>;
  /** The wire that brought it; `null` where the caller did not name the thing sold. */
  wire: WireName | null;
  /** Names of `sold_names`: the route, the URL of the resource, and the recipient. */
  route_id: number | null;
  resource_id: number | null;
  pay_to_id: number | null;
  /** Its part of the gas of the transaction of ours that tried it; `null` where there is none. */
  gas_share: number | null;
  /**
   * The payment that it gives back: then it is a refund's operation, its payer is the float, and it
   * is no sale.
   */
  refund_of: Generated<string | null>;
  /**
   * A refund of it has begun: no request is served by it any more. One that was not delivered has
   * the same time as `delivered_at`, for the previous release.
   */
  refund_started_at: Generated<number | null>;
  /** Seconds after which it is given back by itself unless it is delivered. */
  refund_after: Generated<number | null>;
  /** 1: also if its buyer has left. */
  refunds_abandoned: Generated<number | null>;
  /** 1: the buyer of its last request has left before the answer. */
  is_abandoned: Generated<number | null>;
}

/** The transfer to execute for a payment. Written when it is queued, never changed. */
export interface OrdersTable {
  payment_id: string;
  pay_to: Address;
  valid_after: StoredAmount;
  signature: Hex;
}

/** Sealed answers, kept for buyers that sent a key. */
export interface AnswersTable {
  payer: Address;
  key_hash: string;
  payment_id: string;
  sealed: Uint8Array;
  expires_at: number;
}

/** One row per payer: the lock under which its reservations are decided, and its releases. */
export interface PayersTable {
  payer: Address;
  releases: number;
  window_started_at: number;
}

/**
 * The processes that share the ledger, while they live.
 *
 * Heartbeats beside leases, for two reasons. A heartbeat excludes no other process and needs no
 * fencing token. A process that slept writes the next one, and tokens fence its former payments.
 * And the previous release, which may run beside this one, knows the living by this table alone. It
 * would release the payments of a process whose heartbeat is a lease.
 */
export interface ProcessesTable {
  id: string;
  heartbeat_at: number;
  /** Number of migrations that its program knows; `null` before it wrote that. */
  schema_version: Generated<number | null>;
  /** In JSON, the relayers whose keys it has. `null` where its program does not write them. */
  relayers: Generated<string | null>;
}

/** The dictionary of sold things: routes, resources and recipients, each text once. */
export interface SoldNamesTable {
  id: Generated<number>;
  name: string;
  /** Within the last twelve hours of its use; `null` where a program wrote it that knew no uses. */
  used_at: Generated<number | null>;
}

/**
 * Payments that have ended, without what served their requests and their transactions: token,
 * fingerprint, key, order and signed forms. Columns as in `payments`, with hex texts as bytes.
 */
export interface ArchivedPaymentsTable
  extends Pick<
    PaymentsTable,
    | "id"
    | "network"
    | "value"
    | "valid_before"
    | "state"
    | "carried"
    | "block_number"
    | "reason"
    | "created_at"
    | "queued_at"
    | "submitted_at"
    | "confirmed_at"
    | "final_at"
    | "delivered_at"
    | "closed_at"
    | "wire"
    | "route_id"
    | "resource_id"
    | "pay_to_id"
    | "gas_share"
    | "refund_of"
    | "refund_started_at"
  > {
  asset: Uint8Array;
  authority: Uint8Array | null;
  payer: Uint8Array;
  nonce: Uint8Array;
  scheme: PaymentKind;
  runs: number;
  block_hash: Uint8Array | null;
  transaction_hash: Uint8Array | null;
}

/** One row per network: the chain that its payments are on. */
export interface ChainsTable {
  network: Network;
  /** Hash of the chain's first block. */
  genesis_hash: Hex;
}

/** One row for each set stop switch: new payments that the operator has stopped. */
export interface StopsTable {
  /** Its target, as in `Stop`. A newer release may know more kinds. */
  kind: string;
  /** Of the network, or of the route. */
  name: string;
  /** In words, for buyers. */
  reason: string;
  /** On the database's clock. */
  stopped_at: number;
}

/** One row for each secret that the processes of a ledger share. */
export interface SecretsTable {
  /** Its purpose. */
  name: string;
  secret: string;
}

/** The tables of the ledger. */
export interface LedgerSchema
  extends BookTables,
    LossTables,
    ChannelChainTables,
    ChannelBookTables,
    CallerTables {
  payments: PaymentsTable;
  orders: OrdersTable;
  transactions: TransactionsTable;
  broadcasts: BroadcastsTable;
  answers: AnswersTable;
  payers: PayersTable;
  processes: ProcessesTable;
  code_payers: CodePayersTable;
  code_budgets: CodeBudgetsTable;
  code_gas: CodeGasTable;
  code_records: CodeRecordsTable;
  sold_names: SoldNamesTable;
  payment_sums: PaymentSumsTable;
  payment_changes: PaymentChangesTable;
  unpaid_payments: UnpaidPaymentsTable;
  payment_sums_progress: PaymentSumsProgressTable;
  chains: ChainsTable;
  archived_payments: ArchivedPaymentsTable;
  stops: StopsTable;
  secrets: SecretsTable;
  refunds: RefundsTable;
  refundable_payments: RefundablePaymentsTable;
  visits: VisitsTable;
  audit_entries: AuditEntriesTable;
  channels: ChannelsTable;
  channel_terms: ChannelTermsTable;
  channel_dues: ChannelDuesTable;
  channel_answers: ChannelAnswersTable;
}
