import { isDeepStrictEqual } from "node:util";
import { testUsdt0 } from "@coinslot/devnet";
import type { Address, Hex } from "@coinslot/protocol";
import fc from "fast-check";
import { encodeAbiParameters, encodeEventTopics, toHex, type Hex as ViemHex } from "viem";
import { describe, expect, it } from "vitest";
import type { ReceiptLog } from "../../evm/transaction-receipt.ts";
import type { Claim } from "../scheme.ts";
import { readOutcomes, wordOf } from "./read-outcomes.ts";

const asset: Address = `0x${"aa".repeat(20)}`;
const payer: Address = `0x${"bb".repeat(20)}`;
const payTo: Address = `0x${"dd".repeat(20)}`;

function expected(
  number: number,
  changes: { asset?: Address; payer?: Address; payTo?: Address; value?: bigint } = {},
): Claim {
  const nonce = nonceOf(number);
  const to = changes.payTo ?? payTo;
  const { value = 10n } = changes;
  const id = { network: "eip155:9745" as const, asset, payer, nonce, ...changes };
  return {
    kind: "eip3009",
    id,
    authorization: { from: id.payer, to, value, validAfter: 0n, validBefore: 1n, nonce },
    signature: "0x",
  };
}

function nonceOf(number: number): Hex {
  return toHex(number, { size: 32 });
}

function used(
  number: number,
  { address = asset, authorizer = payer }: { address?: Address; authorizer?: Address } = {},
): ReceiptLog {
  const topics = encodeEventTopics({
    abi: testUsdt0.abi,
    eventName: "AuthorizationUsed",
    args: { authorizer, nonce: nonceOf(number) },
  });
  return { address, topics: topics.map(lower), data: "0x" };
}

function transfer(
  changes: { value?: bigint; to?: Address; from?: Address; address?: Address } = {},
): ReceiptLog {
  const { value = 10n, to = payTo, from = payer, address = asset } = changes;
  const topics = encodeEventTopics({
    abi: testUsdt0.abi,
    eventName: "Transfer",
    args: { from, to },
  });
  return {
    address,
    topics: topics.map(lower),
    data: encodeAbiParameters([{ type: "uint256" }], [value]),
  };
}

/** The payer's way to use a nonce up: one unit to itself. */
const toSelf = { to: payer, value: 1n };

function isSameNumber(one: unknown, other: unknown): boolean {
  return typeof one === "number" && one === other;
}

function lower(topic: ViemHex | ViemHex[] | null): Hex {
  if (typeof topic !== "string") throw new TypeError("A topic is missing");
  return `0x${topic.slice(2).toLowerCase()}`;
}

function outcomesOf(logs: readonly ReceiptLog[], wanted: readonly Claim[]) {
  return [...readOutcomes(logs, wanted).values()];
}

describe("reading outcomes from logs", () => {
  it("finds each authorization with its Transfer, in either order", () => {
    const wanted = [expected(1), expected(2)];
    expect(outcomesOf([used(1), transfer(), used(2), transfer()], wanted)).toEqual([
      "executed",
      "executed",
    ]);
    expect(outcomesOf([transfer(), used(1), transfer(), used(2)], wanted)).toEqual([
      "executed",
      "executed",
    ]);
  });

  it("uses each Transfer for one of two equal payments", () => {
    const wanted = [expected(1), expected(2)];
    expect(outcomesOf([used(1), transfer()], wanted)).toEqual(["executed", "absent"]);
    expect(outcomesOf([used(1), transfer(), used(2)], wanted)).toEqual(["executed", "mismatch"]);
  });

  it("ignores the Transfer of an authorization outside the batch", () => {
    expect(outcomesOf([used(7), transfer(), used(1)], [expected(1)])).toEqual(["mismatch"]);
  });

  it.each([
    ["the next authorization", [used(1), transfer(toSelf), used(7), transfer()]],
    ["the previous authorization", [used(7), transfer(), used(1), transfer(toSelf)]],
    ["no authorization, before it", [transfer(), used(1), transfer(toSelf)]],
    ["no authorization, behind it", [used(1), transfer(toSelf), transfer()]],
    ["no authorization, on both sides", [transfer(), used(1), transfer(toSelf), transfer()]],
    ["the next authorization, Transfer first", [transfer(toSelf), used(1), transfer(), used(7)]],
    [
      "the previous authorization, Transfer first",
      [transfer(), used(7), transfer(toSelf), used(1)],
    ],
  ])("ignores the Transfer of %s", (_, logs) => {
    expect(outcomesOf(logs, [expected(1)])).toEqual(["mismatch"]);
  });

  it("gives one Transfer to one of two payments that are read one after the other", () => {
    const logs = [used(1), transfer(toSelf), used(2), transfer(toSelf), used(7), transfer()];
    const outcomes = [1, 2, 7].flatMap((number) => outcomesOf(logs, [expected(number)]));
    expect(outcomes).toEqual(["mismatch", "mismatch", "executed"]);
  });

  it("reads a payment in the same way, whatever another payer's authorizations emit", () => {
    const other: Address = `0x${"cc".repeat(20)}`;
    const approval = used(7, { authorizer: other });
    const logs = [transfer(toSelf), used(1), transfer(), transfer({ from: other }), approval];
    expect(outcomesOf(logs, [expected(1)])).toEqual(["executed"]);
  });

  it("counts no Transfer for two payments, whatever else a transaction emits", () => {
    const numbers = [1, 2, 3, 4];
    const wanted = numbers.map((number) => expected(number));
    const event = fc.oneof(
      fc.constantFrom(...numbers),
      fc.constantFrom(transfer(), transfer(toSelf), transfer({ from: payTo, to: payer })),
    );
    fc.assert(
      fc.property(fc.uniqueArray(event, { maxLength: 12, comparator: isSameNumber }), (events) => {
        const logs = events.map((each) => (typeof each === "number" ? used(each) : each));
        const paid = logs.filter((log) => isDeepStrictEqual(log, transfer())).length;
        const together = outcomesOf(logs, wanted);
        expect(wanted.flatMap((each) => outcomesOf(logs, [each]))).toEqual(together);
        expect(together.filter((each) => each === "executed").length).toBeLessThanOrEqual(paid);
      }),
    );
  });

  it.each(["AuthorizationUsed first", "Transfer first"])(
    "finds the own Transfer of each authorization of a batch, %s",
    (order) => {
      const values = fc.array(fc.constantFrom(9n, 10n), { minLength: 1, maxLength: 8 });
      fc.assert(
        fc.property(values, (moved) => {
          const logs = moved.flatMap((value, number) => {
            const pair = [used(number), transfer({ value })];
            return order === "Transfer first" ? pair.reverse() : pair;
          });
          const wanted = moved.map((_, number) => expected(number));
          expect(outcomesOf(logs, wanted)).toEqual(
            moved.map((value) => (value === 10n ? "executed" : "mismatch")),
          );
        }),
      );
    },
  );

  it.each([
    ["a smaller amount", transfer({ value: 9n })],
    ["another recipient", transfer({ to: `0x${"de".repeat(20)}` })],
    ["another sender", transfer({ from: `0x${"be".repeat(20)}` })],
    ["another token", transfer({ address: `0x${"ab".repeat(20)}` })],
  ])("ignores a Transfer of %s", (_, log) => {
    expect(outcomesOf([used(1), log], [expected(1)])).toEqual(["mismatch"]);
  });

  it("ignores another token's event for an authorization", () => {
    expect(
      outcomesOf([used(1, { address: `0x${"ab".repeat(20)}` }), transfer()], [expected(1)]),
    ).toEqual(["absent"]);
  });

  it("encodes an address as a topic", () => {
    expect(wordOf(payer)).toBe(transfer().topics[1]);
  });
});
