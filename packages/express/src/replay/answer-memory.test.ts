import type { AuthorizationId } from "@coinslot/protocol";
import { plasma } from "@coinslot/protocol";
import { expect, it } from "vitest";
import type { HeldAnswer } from "../response/held-answer.ts";
import { type AnswerOwner, createAnswerMemory } from "./answer-memory.ts";

let nonces = 0;

function ownerOf(payer: string): AnswerOwner {
  nonces += 1;
  const id: AuthorizationId = {
    network: plasma,
    asset: `0x${"aa".repeat(20)}`,
    payer: `0x${payer.repeat(20)}`,
    nonce: `0x${nonces.toString(16).padStart(64, "0")}`,
  };
  return { id, fingerprint: "GET /a", keyHash: undefined };
}

/** Takes 10,000 bytes, its overhead included. */
const answer: HeldAnswer = {
  status: 200,
  headers: [],
  trailers: [],
  body: Buffer.alloc(10_000 - 2_048),
};

it("the answer memory returns an answer to its own request alone, until it expires", () => {
  const memory = createAnswerMemory({ keepMs: 60_000 });
  const owner = ownerOf("a1");
  memory.keep(owner, answer, 0);
  expect(memory.find(owner, 59_999)).toBe(answer);
  expect(memory.find({ ...owner, fingerprint: "GET /b" }, 0)).toBeUndefined();
  expect(memory.find({ ...owner, keyHash: "key" }, 0)).toBeUndefined();
  const keyed = { ...ownerOf("a1"), keyHash: "key" };
  memory.keep(keyed, answer, 0);
  expect(memory.find({ ...keyed, keyHash: "other" }, 0)).toBeUndefined();
  expect(memory.find({ ...keyed, keyHash: undefined }, 0)).toBeUndefined();
  expect(memory.find(owner, 60_000)).toBeUndefined();
  memory.keep(owner, answer, 60_000);
  memory.drop(owner.id);
  expect(memory.find(owner, 60_000)).toBeUndefined();
});

it("the answer memory evicts a payer's own oldest answer beyond its share, and never another's", () => {
  const memory = createAnswerMemory({ maxBytes: 50_000, maxBytesPerPayer: 20_000 });
  const other = ownerOf("b2");
  const owners = [ownerOf("a1"), ownerOf("a1"), ownerOf("a1")];
  memory.keep(other, answer, 0);
  for (const owner of owners) memory.keep(owner, answer, 0);
  expect(owners.map((owner) => memory.find(owner, 0) !== undefined)).toEqual([false, true, true]);
  expect(memory.find(other, 0)).toBe(answer);
});

it("the answer memory keeps nothing more where others' answers fill it", () => {
  const memory = createAnswerMemory({ maxBytes: 20_000 });
  const owners = [ownerOf("a1"), ownerOf("b2"), ownerOf("c3")];
  for (const owner of owners) memory.keep(owner, answer, 0);
  expect(owners.map((owner) => memory.find(owner, 0) !== undefined)).toEqual([true, true, false]);
});

it("the answer memory keeps 64 MiB by default, 4 MiB of each payer", () => {
  const memory = createAnswerMemory();
  const large: HeldAnswer = { ...answer, body: Buffer.alloc(2 ** 20 - 2_048) };
  const hex = (payer: number) => payer.toString(16).padStart(2, "0");
  const owners = Array.from({ length: 17 * 5 }, (_, index) => ownerOf(hex(Math.floor(index / 5))));
  for (const owner of owners) memory.keep(owner, large, 0);
  const kept = owners.map((owner) => memory.find(owner, 0) !== undefined);
  expect(kept.slice(0, 5)).toEqual([false, true, true, true, true]);
  expect(kept.filter(Boolean)).toHaveLength(64);
  expect(kept.slice(-5)).toEqual(Array(5).fill(false));
});
