import { systemClock } from "@coinslot/chain";
import { toLowerHex } from "@coinslot/protocol";
import pino from "pino";
import { privateKeyToAccount } from "viem/accounts";
import { expect, it } from "vitest";
import type { LedgerContext } from "../../ledger/ledger-context.ts";
import { recordOutcomes } from "../../ledger/payments/record-outcomes.ts";
import { releasePayment } from "../../ledger/payments/release-payment.ts";
import { reservePayment } from "../../ledger/payments/reserve-payments.ts";
import { getPayments } from "../../ledger/queries/list-payments.ts";
import { lookUpPayment } from "../../ledger/queries/look-up-payments.ts";
import { undoBlocks } from "../../ledger/transactions/undo-blocks.ts";
import { createSimulationCache } from "../../simulation/simulation-cache.ts";
import { createStopBoard } from "../../stops/stop-board.ts";
import { afterReads } from "../../testing/after-reads.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { asset, hash, inclusion, network, order } from "../../testing/ledger-payments.ts";
import { signPayment } from "../../testing/payments.ts";
import { createMetrics } from "../metrics.ts";
import { createOutcomeNotifier } from "../outcome-notifier.ts";
import { settlePayment } from "../settle-payment.ts";
import { keyHashOf, paymentOf, settleFingerprint } from "../settle-request.ts";
import type { SettlingContext } from "../settling-context.ts";

const buyer = privateKeyToAccount(hash(1));
const { join, wait } = ledgerForEachTest("sqlite");

/** The settlement of a network whose chain reports every payment's nonce as used. */
async function settlerOf(ledger: LedgerContext) {
  const logger = pino({ level: "silent" });
  const metrics = createMetrics();
  const emit = () => undefined;
  const clock = systemClock;
  const notifier = await createOutcomeNotifier({
    ledger,
    clock,
    logger,
    metrics,
    emit,
    pollMs: 10,
  });
  const settler: SettlingContext = {
    stops: createStopBoard(),
    context: {
      ledger,
      notifier,
      simulationCache: createSimulationCache({
        freshMs: 1,
        keepMs: 1,
        callGasOf: () => 300_000n,
        now: Date.now,
      }),
      metrics,
      times: {
        leaseMs: 1,
        sweepMs: 1,
        leadMs: 1,
        settlingMs: 1,
        disputeMs: 1,
        idleMs: 1,
        refundMs: 1,
      },
      clock,
      now: Date.now,
      logger,
      emit,
      faultPoint: () => undefined,
    },
    verifier: {
      verify: async () => ({
        isValid: false,
        invalidReason: "invalid_exact_evm_nonce_already_used",
        invalidMessage: "The nonce is used.",
        payer: toLowerHex(buyer.address),
      }),
      prove: () => undefined,
    },
    settlements: new Map(),
    timeoutMs: () => 100,
    maxAnswerBytes: 0,
  };
  return { settler, notifier };
}

/** A new payment of the buyer that is queued for a request. */
async function queueHeld(ledger: LedgerContext, idempotencyKey?: string) {
  const { paymentPayload, paymentRequirements } = await signPayment({
    network,
    asset,
    signer: buyer,
    payTo: order.payTo,
  });
  const payment = paymentOf(paymentPayload, paymentRequirements);
  if (payment === undefined) throw new Error("The payment cannot be read");
  const { value, validBefore } = payment.authorization;
  const wish = {
    id: payment.id,
    fingerprint: settleFingerprint(payment),
    value,
    validBefore,
    payTo: payment.payTo,
    order,
  };
  const keyHash = keyHashOf(payment, idempotencyKey);
  const reserved = await reservePayment(ledger, { ...wish, keyHash });
  if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
  const { paymentId, token } = reserved;
  return { wish, payment, paymentId, token, paymentPayload, paymentRequirements };
}

/** A new payment of the buyer that is queued, and that no request holds. */
async function queuePayment(ledger: LedgerContext) {
  const queued = await queueHeld(ledger);
  const { payer } = queued.payment.id;
  await releasePayment(ledger, { token: queued.token, payer, countsAgainstPayer: false });
  return queued;
}

it("an outcome that a fault of the ledger withholds is not delivered, and the next call returns it", async () => {
  const ledger = await join("one");
  const { paymentId, paymentPayload, paymentRequirements } = await queuePayment(ledger);
  await recordOutcomes(ledger, [{ confirmed: { ids: [paymentId], inclusion } }]);
  // The last heartbeat is no longer young, and says nothing of the reservation.
  wait(20_000);
  let writes = 0;
  const write: LedgerContext["write"] = (work, options) => {
    writes += 1;
    // The first takes the payment up, the second asks whether this process still holds it.
    return writes === 2 ? Promise.reject(new Error("no ledger")) : ledger.write(work, options);
  };
  const { settler, notifier } = await settlerOf({ ...ledger, write });
  const settle = () => settlePayment(settler, paymentPayload, paymentRequirements, {});

  await expect(settle()).rejects.toThrow("no ledger");
  expect(await settle()).toMatchObject({ success: true });
  expect(await settle()).toMatchObject({ success: false, errorReason: "duplicate_settlement" });
  await notifier.stop();
});

it("a renewed lookup leaves a payment to the watch that failed meanwhile", async () => {
  const ledger = await join("one");
  const { payment, paymentId, paymentPayload, paymentRequirements } = await queuePayment(ledger);
  const { settler, notifier } = await settlerOf(
    afterReads(ledger, async () => {
      const reason = "invalid_exact_evm_transaction_failed";
      await recordOutcomes(ledger, [{ failed: [{ ids: [paymentId], reason }] }]);
    }),
  );

  const settled = await settlePayment(settler, paymentPayload, paymentRequirements, {});

  expect(await getPayments(ledger, [paymentId])).toMatchObject([{ state: "failed" }]);
  expect(await lookUpPayment(ledger, { id: payment.id, fingerprint: "GET /b" })).toMatchObject({
    availability: "free",
  });
  expect(settled).toMatchObject({
    success: false,
    errorReason: "invalid_exact_evm_nonce_already_used",
  });
  await notifier.stop();
});

it("a renewed lookup reports nothing as settled that a reorganisation undid meanwhile", async () => {
  const ledger = await join("one");
  const { paymentId, paymentPayload, paymentRequirements } = await queuePayment(ledger);
  await recordOutcomes(ledger, [{ confirmed: { ids: [paymentId], inclusion } }]);
  const { settler, notifier } = await settlerOf(
    afterReads(ledger, async () => {
      await undoBlocks(ledger, {
        network,
        blocks: [{ number: inclusion.blockNumber, hash: inclusion.blockHash }],
      });
    }),
  );

  const settled = await settlePayment(settler, paymentPayload, paymentRequirements, {});

  expect(settled).toMatchObject({ success: false, errorReason: "settlement_pending" });
  expect(await getPayments(ledger, [paymentId])).toMatchObject([{ deliveredAt: undefined }]);
  await notifier.stop();
});

it("a repeated settlement reports no payment as its own that another request has settled meanwhile", async () => {
  const ledger = await join("one");
  const idempotencyKey = "order 1";
  const { wish, paymentId, paymentPayload, paymentRequirements } = await queueHeld(
    ledger,
    idempotencyKey,
  );
  let hasFailed = false;
  const { settler, notifier } = await settlerOf(
    afterReads(ledger, async () => {
      if (hasFailed) return;
      hasFailed = true;
      const reason = "invalid_exact_evm_insufficient_balance";
      await recordOutcomes(ledger, [{ failed: [{ ids: [paymentId], reason }] }]);
      const again = await reservePayment(ledger, { ...wish, fingerprint: "GET /b" });
      expect(again.outcome).toBe("reserved");
      await recordOutcomes(ledger, [{ confirmed: { ids: [paymentId], inclusion } }]);
    }),
  );

  const settled = await settlePayment(settler, paymentPayload, paymentRequirements, {
    idempotencyKey,
  });

  expect(settled).toMatchObject({ success: false, errorReason: "duplicate_settlement" });
  await notifier.stop();
});
