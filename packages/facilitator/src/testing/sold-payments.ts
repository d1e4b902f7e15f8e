import type { Address, Network, WireName } from "@coinslot/protocol";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { archivePayments } from "../ledger/maintenance/archive-payments.ts";
import { deliverPayment } from "../ledger/payments/deliver-payments.ts";
import { recordOutcomes } from "../ledger/payments/record-outcomes.ts";
import { reservePayment } from "../ledger/payments/reserve-payments.ts";
import { endedStates } from "../ledger/sums-schema.ts";
import { storeTransaction } from "../ledger/transactions/store-transaction.ts";
import {
  asset,
  authorization,
  hash,
  order,
  takeLease,
  transaction,
  wish,
} from "./ledger-payments.ts";

/** A sale for a test, and how far it has come. */
export interface TestSale {
  payer?: Address;
  asset?: Address;
  network?: Network;
  payTo?: Address;
  route?: string;
  wire?: WireName;
  value?: bigint;
  state?: "queued" | "submitted" | "confirmed";
  /** Of the transaction that carries it. */
  nonce?: number;
}

/** Reserves, queues, stores confirms and delivers a payment with the thing that it buys. */
export async function sellForTest(ledger: LedgerContext, sale: TestSale = {}) {
  const { payer, network, payTo = order.payTo, route = "GET /weather", wire = "x402v2" } = sale;
  const { state = "confirmed", nonce = 0, value = 10n } = sale;
  const id = authorization({
    asset: sale.asset ?? asset,
    ...(payer && { payer }),
    ...(network && { network }),
  });
  const reserved = await reservePayment(
    ledger,
    wish({
      id,
      value,
      payTo,
      order: { ...order, payTo },
      sold: { route, resource: `https://shop.example${route.slice(4)}`, wire },
    }),
  );
  if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
  const { paymentId } = reserved;
  const inclusion = {
    transactionHash: hash(1_000 + nonce),
    blockNumber: 5 + nonce,
    blockHash: hash(5 + nonce),
  };
  if (state === "queued") return { paymentId, id, inclusion };
  const lease = await takeLease(ledger);
  const stored = transaction(nonce, [paymentId]);
  const outcome = await storeTransaction(ledger, lease, { ...stored, network: id.network });
  await ledger.leases.release(lease);
  if (outcome !== "stored") throw new Error(outcome);
  if (state === "confirmed") {
    await recordOutcomes(ledger, [{ confirmed: { ids: [paymentId], inclusion } }]);
    await deliverPayment(ledger, reserved.token);
  }
  return { paymentId, id, inclusion };
}

/** Moves every payment that has ended into the archive, and returns their number. */
export async function archiveForTest(ledger: LedgerContext): Promise<number> {
  const time = { valid_before: ledger.dialect.amount.encode(1n), token: null, closed_at: 1 };
  await ledger.db
    .updateTable("payments")
    .set({ ...time, final_at: 1, delivered_at: 1 })
    .where("state", "in", endedStates)
    .execute();
  const { ended } = await archivePayments(ledger, {
    after: "",
    before: ledger.now() + 1,
    now: ledger.now(),
    undeliveredBefore: undefined,
    limit: 1_000,
  });
  return ended;
}
