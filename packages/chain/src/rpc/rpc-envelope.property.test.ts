import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeReply, encodeCalls } from "./rpc-envelope.ts";

describe("decodeReply", () => {
  it("never throws, and returns one outcome per call, for any input", () => {
    const anything = fc.oneof(fc.string(), fc.json());
    fc.assert(
      fc.property(anything, fc.integer({ min: 1, max: 5 }), fc.nat(), (text, count, firstId) => {
        const reply = decodeReply(text, count, firstId);
        if (reply.kind === "answers") expect(reply.answers).toHaveLength(count);
      }),
    );
  });

  it("finds each answer by its id, in any order and among unknown ids", () => {
    const results = fc.array(fc.jsonValue(), { minLength: 2, maxLength: 8 });
    fc.assert(
      fc.property(results, fc.nat(1_000), fc.infiniteStream(fc.nat()), (values, firstId, order) => {
        const answers = values.map((result, index) => ({ id: firstId + index, result }));
        const strangers = [{ id: firstId - 1, result: "x" }, { id: "abc", result: 1 }, null, 7];
        const shuffled = [...answers, ...strangers]
          .map((item) => ({ item, key: order.next().value ?? 0 }))
          .sort((a, b) => a.key - b.key)
          .map(({ item }) => item);

        const reply = decodeReply(JSON.stringify(shuffled), values.length, firstId);

        const expected = values.map((result) => ({ result: JSON.parse(JSON.stringify(result)) }));
        expect(reply).toMatchObject({ kind: "answers", answers: expected });
      }),
    );
  });
});

describe("encodeCalls", () => {
  it("writes one call as an object and several as a batch", () => {
    const call = { method: "eth_chainId" };
    expect(JSON.parse(encodeCalls([call], 7))).toMatchObject({ id: 7, params: [] });
    expect(JSON.parse(encodeCalls([call, call], 7))).toMatchObject([{ id: 7 }, { id: 8 }]);
  });
});
