import { plasma } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { decodeAnswer, encodeAnswer, type HeldAnswer } from "../response/held-answer.ts";
import { createAnswerSeal } from "./answer-seal.ts";

const id = {
  network: plasma,
  asset: "0xb8ce59fc3717ada4c02eadf9682a9e934f625ebb",
  payer: "0x00000000000000000000000000000000000000a1",
  nonce: `0x${"11".repeat(32)}`,
} as const;
const key = "a secret of the buyer";

describe("the seal of an answer", () => {
  it("is opened by the same key for the same payment only", () => {
    const seal = createAnswerSeal({ key, id });
    const sealed = seal.seal(Buffer.from("answer"));
    expect(createAnswerSeal({ key, id }).open(sealed)?.toString()).toBe("answer");
    const others = [
      createAnswerSeal({ key: `${key}.`, id }),
      createAnswerSeal({ key, id: { ...id, nonce: `0x${"22".repeat(32)}` } }),
      createAnswerSeal({ key, id: { ...id, payer: "0x00000000000000000000000000000000000000a2" } }),
    ];
    for (const other of others) expect(other.open(sealed)).toBeUndefined();
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = Buffer.from(sealed);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(seal.open(changed)).toBeUndefined();
    }
    expect(seal.open(sealed.subarray(0, 20))).toBeUndefined();
  });

  it("has a random ciphertext, and a stable lookup name", () => {
    const seal = createAnswerSeal({ key, id });
    const twice = [seal.seal(Buffer.from("answer")), seal.seal(Buffer.from("answer"))];
    expect(Buffer.from(twice[0] ?? []).equals(Buffer.from(twice[1] ?? []))).toBe(false);
    expect(createAnswerSeal({ key, id }).keyHash).toBe(seal.keyHash);
    expect(seal.keyHash).toMatch(/^[0-9a-f]{64}$/);
  });

  it("contains the whole answer", () => {
    const answer: HeldAnswer = {
      status: 201,
      statusMessage: "Made",
      headers: [
        ["content-type", "text/plain"],
        ["set-cookie", ["a=1", "b=2"]],
      ],
      trailers: [["X-Sum", "1"]],
      body: Buffer.from([0, 1, 2, 255]),
    };
    expect(decodeAnswer(encodeAnswer(answer))).toEqual(answer);
  });
});
