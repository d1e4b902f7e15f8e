import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { authorization, order, payer, wish } from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { lookUpPayment } from "../queries/look-up-payments.ts";
import { createAnswerQuotas } from "./answer-quotas.ts";
import { enqueuePayment } from "./enqueue-payments.ts";
import { dropExpiredAnswers } from "./keep-answers.ts";
import { reservePayment } from "./reserve-payments.ts";

const another = `0x${"b2".repeat(20)}` as const;
const answer = (keyHash: string) => ({ keyHash, sealed: new Uint8Array(1_000) });
/** The size of one answer: its bytes and its row's overhead. */
const size = 1_256;

describe("the quotas of kept answers", () => {
  it("evict a payer's own oldest answers beyond its share, an eighth of it at once", () => {
    const limits = { bytesPerPayer: 8 * size, bytesPerProcess: 100 * size, bytesInTable: 1e9 };
    const quotas = createAnswerQuotas(limits);
    quotas.makeRoom(another, answer("other"), 1);
    for (let key = 0; key < 8; key += 1) {
      const room = quotas.makeRoom(payer, answer(`${key}`), 1);
      expect(room).toEqual({ isKept: true, evicted: [] });
    }
    expect(quotas.makeRoom(payer, answer("8"), 1)).toEqual({
      isKept: true,
      evicted: [
        { payer, keyHash: "0" },
        { payer, keyHash: "1" },
      ],
    });
    expect(quotas.makeRoom(payer, answer("9"), 1)).toEqual({ isKept: true, evicted: [] });
  });

  it("refuse a payer without answers to evict, where the process or the table is full", () => {
    const limits = { bytesPerPayer: 4 * size, bytesPerProcess: 2 * size, bytesInTable: 10 * size };
    const quotas = createAnswerQuotas(limits);
    quotas.makeRoom(another, answer("1"), 5);
    quotas.makeRoom(another, answer("2"), 5);
    expect(quotas.makeRoom(payer, answer("3"), 9)).toEqual({ isKept: false, evicted: [] });
    quotas.dropExpired(5);
    expect(quotas.makeRoom(payer, answer("3"), 9)).toEqual({ isKept: true, evicted: [] });
    quotas.measure(10 * size, 0);
    expect(quotas.makeRoom(payer, answer("4"), 9)).toEqual({
      isKept: true,
      evicted: [{ payer, keyHash: "3" }],
    });
    expect(quotas.makeRoom(another, answer("5"), 9)).toEqual({ isKept: false, evicted: [] });
  });
});

describe.each(engines)("kept answers on %s", (engine) => {
  const { join } = ledgerForEachTest(engine, {
    answerLimits: { bytesPerPayer: 2 * size },
    releaseLimit: { count: 100, windowMs: 1_000 },
  });

  async function keep(ledger: LedgerContext, from: typeof payer | typeof another, keyHash: string) {
    const request = wish({ id: authorization({ payer: from }), keyHash });
    const reserved = await reservePayment(ledger, request);
    if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
    await enqueuePayment(ledger, {
      token: reserved.token,
      payer: from,
      order,
      answer: answer(keyHash),
    });
    return async () => (await lookUpPayment(ledger, request)).answer !== undefined;
  }

  it("kept answers of one payer are evicted for its own newer ones, and never for another's", async () => {
    const ledger = await join("one");
    const isKept = [await keep(ledger, another, "other")];
    for (const key of ["1", "2", "3", "4"]) isKept.push(await keep(ledger, payer, key));
    await dropExpiredAnswers(ledger);
    const kept = await Promise.all(isKept.map((ask) => ask()));
    expect(kept).toEqual([true, false, false, true, true]);
  });
});
