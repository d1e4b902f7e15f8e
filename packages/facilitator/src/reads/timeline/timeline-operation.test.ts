import { registerEndpoints } from "@coinslot/storage";
import { encodeFunctionData, parseAbi, serializeTransaction } from "viem";
import { describe, expect, it } from "vitest";
import type { LedgerContext } from "../../ledger/ledger-context.ts";
import { createRefund } from "../../ledger/refunds/create-refund.ts";
import { undoBlocks } from "../../ledger/transactions/undo-blocks.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { asset, hash, network, order, payer, relayer } from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import { archiveForTest, sellForTest } from "../../testing/sold-payments.ts";
import { decodeTransaction } from "./decode-transaction.ts";
import { timelineOperation } from "./timeline-operation.ts";

async function read(ledger: LedgerContext, id: string) {
  if (timelineOperation.access !== "read") throw new Error("not a read");
  return timelineOperation.result.parse(await timelineOperation.run(ledger, { id }));
}

describe.each(engines)("payments.timeline on %s", (engine) => {
  const { join, wait } = ledgerForEachTest(engine);

  it("tells a payment's way, who did each step, and what went out", async () => {
    const ledger = await join("one");
    await registerEndpoints(ledger, [
      {
        id: "shop",
        url: "https://user:word@hooks.example/in?token=secret",
        secrets: ["whsec"],
        types: ["payment.settled", "refund.created"],
      },
    ]);
    const { paymentId, id, inclusion } = await sellForTest(ledger);
    wait(5);
    const refund = await createRefund(ledger, {
      payment: paymentId,
      idempotencyKey: "one",
      reason: "a broken forecast",
    });
    const timeline = await read(ledger, paymentId);
    expect(timeline.payment).toMatchObject({
      id: paymentId,
      route: "GET /weather",
      state: "confirmed",
      scheme: "eip3009",
      authority: asset,
      attempts: 1,
    });
    expect(timeline.offer).toEqual({
      ...{ at: null, route: "GET /weather", resource: "https://shop.example/weather" },
      ...{ wire: "x402v2", scheme: "eip3009", network, asset, symbol: null, value: "10" },
      ...{ amount: null, payTo: order.payTo },
    });
    expect(timeline.steps.map(({ kind }) => kind).sort()).toEqual(
      [
        ...["reserved", "queued", "submitted", "confirmed", "delivered"],
        ...["refund-created", "event", "event"],
      ].sort(),
    );
    expect(timeline.steps).toContainEqual(
      expect.objectContaining({
        kind: "submitted",
        by: { kind: "relayer", name: relayer },
        facts: { transaction: inclusion.transactionHash, nonce: 0 },
      }),
    );
    expect(timeline.transactions).toMatchObject([
      { relayer, nonce: 0, payments: 1, forms: [{ content: "payments", message: null }] },
    ]);
    expect(timeline.refunds).toMatchObject([{ id: refund.id, reason: "a broken forecast" }]);
    expect(timeline.events).toMatchObject([
      {
        type: "payment.settled",
        deliveries: [{ receiver: "shop", url: "https://hooks.example/…", state: "pending" }],
      },
      { type: "refund.created" },
    ]);
    expect(timeline.authorization).toEqual({
      token: asset,
      from: payer,
      to: order.payTo,
      value: "10",
      validAfter: "0",
      validBefore: String(2n ** 256n - 1n),
      nonce: id.nonce,
    });
    expect(JSON.stringify(timeline)).not.toMatch(/secret|word@|1111111111/);
    await expect(read(ledger, "no such")).rejects.toMatchObject({ code: "unknown_payment" });
  });

  it("tells of a reorganisation, and says what retention has deleted", async () => {
    const ledger = await join("one");
    const { paymentId, inclusion } = await sellForTest(ledger);
    const blocks = [{ number: inclusion.blockNumber, hash: inclusion.blockHash }];
    await undoBlocks(ledger, { network, blocks });
    const reverted = (await read(ledger, paymentId)).steps.filter(
      ({ kind }) => kind === "reverted",
    );
    expect(reverted).toMatchObject([{ by: { kind: "chain", name: network } }]);
    await sellForTest(ledger, { nonce: 1 });
    expect(await archiveForTest(ledger)).toBe(1);
    const archived = await ledger.db
      .selectFrom("archived_payments")
      .select("id")
      .executeTakeFirstOrThrow();
    const timeline = await read(ledger, archived.id);
    expect(timeline.payment.isPruned).toBe(true);
    expect(timeline.offer).toMatchObject({ route: "GET /weather", value: "10", at: null });
    expect(timeline.authorization).toBe("pruned");
    expect(timeline.transactions).toEqual([]);
  });
});

describe("a signed transaction", () => {
  const transferAbi = parseAbi([
    "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
    "function aggregate3((address target, bool allowFailure, bytes callData)[] calls)",
  ]);
  const callOf = (nonce: number) =>
    encodeFunctionData({
      abi: transferAbi,
      functionName: "transferWithAuthorization",
      args: [payer, order.payTo, 7n, 0n, 9n, hash(nonce), order.signature],
    });
  const transaction = { type: "eip1559", chainId: 1, nonce: 3, gas: 5n } as const;
  const signature = { r: hash(11), s: hash(12), yParity: 0 } as const;

  it("is decoded to the call of one payment of a batch, without a signature", () => {
    const data = encodeFunctionData({
      abi: transferAbi,
      functionName: "aggregate3",
      args: [
        [1, 2, 3].map((nonce) => ({ target: asset, allowFailure: true, callData: callOf(nonce) })),
      ],
    });
    const raw = serializeTransaction({ ...transaction, to: relayer, data }, signature);
    expect(decodeTransaction(raw, { payer, nonce: hash(2) })).toEqual({
      type: "eip1559",
      to: relayer,
      nonce: 3,
      gas: "5",
      calls: 3,
      transfer: {
        token: asset,
        from: payer,
        to: order.payTo,
        value: "7",
        validAfter: "0",
        validBefore: "9",
        nonce: hash(2),
      },
    });
    const single = serializeTransaction({ ...transaction, to: asset, data: callOf(2) }, signature);
    expect(decodeTransaction(single, { payer, nonce: hash(2) })?.transfer?.value).toBe("7");
    expect(decodeTransaction(single, { payer, nonce: hash(1) })?.transfer).toBeNull();
  });

  it("a signed transaction of another form is none", () => {
    for (const raw of ["0x02", "0x", "", "0xzz", "pruned"]) {
      expect(decodeTransaction(raw, { payer, nonce: hash(1) })).toBeNull();
    }
  });
});
