import type { Address } from "@coinslot/protocol";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { closePayments } from "../ledger/maintenance/close-payments.ts";
import { recordOutcomes } from "../ledger/payments/record-outcomes.ts";
import { releasePayment } from "../ledger/payments/release-payment.ts";
import { reservePayment } from "../ledger/payments/reserve-payments.ts";
import type { ReserveWish } from "../ledger/payments/reserve-request.ts";
import { writeRefund } from "../ledger/refunds/move-refund.ts";
import { storeTransaction } from "../ledger/transactions/store-transaction.ts";
import type { BookEvent } from "./book-events.ts";
import { crashIn } from "./crash-in.ts";
import { authorization, hash, network, order, type takeLease, wish } from "./ledger-payments.ts";

const assets = [`0x${"a1".repeat(20)}`, `0x${"a2".repeat(20)}`] as const;
const routes = ["GET /a", "GET /b"] as const;
export const relayer = `0x${"cc".repeat(20)}` as const;

/** Histories on one ledger, by two of its processes. */
export interface Histories {
  ledger: LedgerContext;
  /** Another process of the same ledger. */
  other: LedgerContext;
  lease: Awaited<ReturnType<typeof takeLease>>;
  all: readonly BookHistory[];
  /** Stored transactions. */
  sent: { id: string; nonce: number }[];
  nonce: number;
}

/** The payments of one payer, and refunds to it. */
export interface BookHistory {
  payer: Address;
  made: { id: string; wish: ReserveWish; token: string }[];
  adopted: string[];
}

export function createHistories(
  options: Pick<Histories, "ledger" | "other" | "lease"> & { count: number },
): Histories {
  const all = Array.from({ length: options.count }, (_, index) => ({
    payer: `0x${(0xbb_0000 + index).toString(16).padStart(40, "0")}` as const,
    ...{ made: [], adopted: [] },
  }));
  return { ...options, all, sent: [], nonce: 0 };
}

/** An event of one history. */
export interface Turn {
  history: BookHistory;
  event: BookEvent;
}

/**
 * Plays one event of each history at the same time. Those of one kind are one piece of work, as a
 * block or a batch has many payments. Events that do not fit the ledger's state change nothing.
 */
export async function playTurns(histories: Histories, turns: readonly Turn[]): Promise<void> {
  const byKind = new Map<string, Turn[]>();
  for (const turn of turns) {
    const { kind, pick } = turn.event;
    // A block for each of five numbers.
    const key = kind.startsWith("confirm") ? `${kind} ${pick % 5}` : kind;
    const group = byKind.get(key);
    if (group === undefined) byKind.set(key, [turn]);
    else group.push(turn);
  }
  await Promise.all([...byKind.values()].map((group) => play(histories, group)));
}

async function play(histories: Histories, turns: readonly Turn[]): Promise<unknown> {
  const { ledger, other } = histories;
  const [first] = turns;
  if (first === undefined) return;
  const { kind, pick } = first.event;
  switch (kind) {
    case "queue":
    case "refund":
      return queue(histories, turns, kind === "refund");
    case "adopt":
      return adopt(histories, turns);
    case "adopted":
      return followAdopted(histories, turns);
    case "confirm all":
      return confirm(histories, [ledger], { ids: idsOf(turns.map((each) => each.history)), pick });
  }
  const chosen = turns.flatMap((turn) => {
    const payment = pickOf(turn.history.made, turn.event.pick);
    return payment ? [{ ...turn, payment }] : [];
  });
  if (chosen.length === 0) return;
  const ids = chosen.map(({ payment }) => payment.id);
  switch (kind) {
    case "confirm":
      return confirm(histories, [ledger], { ids, pick });
    case "confirm twice":
      return confirm(histories, [ledger, other], { ids, pick });
    case "crash":
      return crashIn(ledger, ids);
    case "close":
      return closePayments(ledger, ids);
    case "lose":
      return lose(histories, ids);
    case "fail":
      return fail(histories, ids);
    case "submit":
      return submit(histories, chosen);
    case "again":
      return Promise.all(
        chosen.map(({ history, event, payment }) =>
          reserve(histories, history, {
            ...payment.wish,
            ...{ value: event.value, sold: soldBy(event.pick) },
          }),
        ),
      );
    case "release":
      return Promise.all(
        chosen.map(({ history: { payer }, payment: { token } }) =>
          releasePayment(ledger, { token, payer, countsAgainstPayer: false }),
        ),
      );
  }
}

export const blockOf = (number: number) => ({ number, hash: hash(9_000 + number) });

export const idsOf = (histories: readonly BookHistory[]): string[] =>
  histories.flatMap(({ made }) => made.map(({ id }) => id));

export function inclusionIn({ nonce }: Histories, pick: number) {
  const { number, hash: blockHash } = blockOf(pick % 5);
  return { transactionHash: hash(100_000 + nonce), blockNumber: number, blockHash };
}

export function confirm(
  histories: Histories,
  by: readonly LedgerContext[],
  { ids, pick }: { ids: readonly string[]; pick: number },
): Promise<unknown> {
  const confirmed = { ids, inclusion: inclusionIn(histories, pick) };
  return Promise.all(by.map((each) => recordOutcomes(each, [{ confirmed }])));
}

function fail({ ledger }: Histories, ids: readonly string[]): Promise<unknown> {
  const reason = "invalid_exact_evm_transaction_failed";
  return recordOutcomes(ledger, [{ failed: [{ ids, reason }] }]);
}

/** Payments end without their money, whatever they have been. */
export async function lose(histories: Histories, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await fail(histories, ids);
  await closePayments(histories.ledger, ids);
}

/** By their number from the newest. */
function pickOf<Item>(items: readonly Item[], pick: number): Item | undefined {
  return items.at(-1 - (pick % Math.max(1, items.length)));
}

async function reserve(
  { ledger }: Histories,
  { made }: BookHistory,
  wanted: ReserveWish,
): Promise<string | undefined> {
  const result = await reservePayment(ledger, wanted);
  if (result.outcome !== "reserved") return undefined;
  made.push({ id: result.paymentId, wish: wanted, token: result.token });
  return result.paymentId;
}

async function queue(
  histories: Histories,
  turns: readonly Turn[],
  isRefund: boolean,
): Promise<void> {
  const { ledger } = histories;
  const seconds = BigInt(Math.floor(ledger.now() / 1000));
  const made = await Promise.all(
    turns.map(({ history, event: { pick, value } }) => {
      const asset = assets[pick % 2] ?? assets[0];
      const validBefore = seconds + BigInt(pick) * 3_600n;
      const id = authorization({ asset, payer: history.payer });
      return reserve(histories, history, {
        ...wish({ id, value, validBefore, order }),
        sold: soldBy(pick),
      });
    }),
  );
  const ids = made.filter((id) => id !== undefined);
  if (!isRefund || ids.length === 0) return;
  await ledger.db
    .updateTable("payments")
    .set({ refund_of: "sale" })
    .where("id", "in", ledger.dialect.among(ids))
    .execute();
}

/** One transaction for those that are queued; for every seventh choice, whatever they are. */
async function submit(
  histories: Histories,
  chosen: readonly (Turn & { payment: BookHistory["made"][number] })[],
): Promise<void> {
  const { ledger, lease, sent } = histories;
  const { among } = ledger.dialect;
  const ids = chosen.map(({ payment }) => payment.id);
  const queued = await ledger.db
    .selectFrom("payments")
    .select(["id", "fingerprint"])
    .where("id", "in", among(ids))
    .where("state", "=", "queued")
    .execute();
  const isUnseen = chosen[0]?.event.pick === 7;
  const payments = isUnseen
    ? chosen.map(({ payment: { id, wish } }) => ({ id, fingerprint: wish.fingerprint }))
    : queued;
  if (payments.length === 0) return;
  histories.nonce += 1;
  const { nonce } = histories;
  const id = `transaction of nonce ${nonce}`;
  const outcome = await storeTransaction(ledger, lease, {
    ...{ id, network, relayer, nonce, gasLimit: 1n, payments },
    broadcast: {
      ...{ hash: hash(1_000_000 + nonce), raw: "0x02", content: "payments" },
      ...{ maxFeePerGas: 7n, maxPriorityFeePerGas: 1n },
    },
  });
  if (outcome === "stored") sent.push({ id, nonce });
}

/** Refunds of another ledger are found executed. */
async function adopt({ ledger }: Histories, turns: readonly Turn[]): Promise<void> {
  const rows = turns.map(({ history: { payer, adopted, made }, event: { pick, value } }) => {
    const n = adopted.length + 1;
    const id = `${payer} refund ${n}`;
    adopted.push(id);
    const amount = ledger.dialect.amount.encode(value);
    return {
      ...{ id, payment_id: made.at(-1)?.id ?? `${payer} sale`, n, network, amount },
      ...{ asset: assets[pick % 2] ?? assets[0], payer, nonce: hash(1), requested: null },
      ...{ cause: null, state: "sent" as const, reason: null, operation_id: null, final_at: null },
      ...{ idempotency_key: null, float: null, valid_before: null, transaction_hash: null },
      ...{ block_number: null, block_hash: null, created_at: 1, next_at: 1, approved_at: null },
      ...{ signed_at: null, confirmed_at: null, origin: "operator" as const },
    };
  });
  await ledger.db.insertInto("refunds").values(rows).execute();
}

/**
 * Their depth changes; from another block, they may have another amount. Two processes write the
 * same, from the rows as they were read.
 */
async function followAdopted({ ledger, other }: Histories, turns: readonly Turn[]): Promise<void> {
  const events = new Map<string, BookEvent>();
  for (const { history, event } of turns) {
    const id = pickOf(history.adopted, event.pick);
    if (id !== undefined) events.set(id, event);
  }
  if (events.size === 0) return;
  const rows = await ledger.db
    .selectFrom("refunds")
    .selectAll()
    .where("id", "in", ledger.dialect.among([...events.keys()]))
    .where("state", "!=", "final")
    .orderBy("id")
    .execute();
  const states = ["confirmed", "confirmed", "sent", "scheduled", "final"] as const;
  const move = (by: LedgerContext) =>
    by.write(async (transaction) => {
      for (const row of rows) {
        const { pick, value } = events.get(row.id) ?? { pick: 0, value: 1n };
        const state = states[pick % states.length] ?? "sent";
        const isReadAnew = state === "sent" || state === "scheduled";
        const amount = isReadAnew ? { amount: ledger.dialect.amount.encode(value) } : {};
        await writeRefund(transaction, row, { state, ...amount });
      }
    });
  await Promise.all([move(ledger), move(other)]);
}

function soldBy(pick: number) {
  return { route: routes[pick % 2] ?? "", resource: "http://a/", wire: "x402v2" as const };
}
