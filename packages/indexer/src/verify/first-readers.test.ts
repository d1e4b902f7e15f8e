import { expect, it } from "vitest";
import type { KnownToken } from "../store/known-token.ts";
import { randomOf } from "../testing/seeded-random.ts";
import { createFirstReaders } from "./first-readers.ts";

const [old, added] = [1, 2].map(
  (id): KnownToken => ({
    id,
    chainId: 1,
    blockchain: "devnet",
    token: `token-${id}`,
    address: `0x${String(id).padStart(40, "0")}`,
    startBlock: 0,
  }),
);
if (old === undefined || added === undefined) throw new Error("no tokens");
const both = [old, added];

it("names the endpoint that has read a block first, and the end of its blocks", () => {
  const readers = createFirstReaders();
  readers.note({ tokens: both, from: 1, next: 5 }, 1);
  readers.note({ tokens: both, from: 5, next: 9 }, 1);
  readers.note({ tokens: both, from: 9, next: 12 }, 2);
  expect(readers.of(old, 3)).toEqual({ endpoint: 1, next: 9 });
  expect(readers.of(old, 11)).toEqual({ endpoint: 2, next: 12 });
  expect(readers.of(old, 12)).toEqual({ endpoint: undefined, next: Number.POSITIVE_INFINITY });
});

it("names the last one of a block that was read again after a reorganisation", () => {
  const readers = createFirstReaders();
  readers.note({ tokens: both, from: 1, next: 9 }, 1);
  readers.note({ tokens: both, from: 7, next: 8 }, 2);
  expect(readers.of(old, 6)).toEqual({ endpoint: 1, next: 7 });
  expect(readers.of(old, 7)).toEqual({ endpoint: 2, next: 8 });
  expect(readers.of(old, 8)).toEqual({ endpoint: 1, next: 9 });
});

it("remembers all blocks of a long history whose ranges come in any order", () => {
  const readers = createFirstReaders();
  const ranges = 4_000;
  const random = randomOf("ranges of a history");
  const order = Array.from({ length: ranges }, (_, at) => ({ at, by: random.between(0, 1e9) }));
  for (const { at } of order.sort((a, b) => a.by - b.by))
    readers.note({ tokens: [old], from: 10 * at, next: 10 * at + 10 }, 1);
  expect(readers.of(old, 0)).toEqual({ endpoint: 1, next: 10 * ranges });
});

it("names the last reader of each block, whatever ranges overlap", () => {
  const random = randomOf("overlapping ranges");
  const readers = createFirstReaders();
  const truth = new Map<number, number>();
  for (let count = 0; count < 300; count++) {
    const from = random.between(0, 60);
    const next = from + random.between(1, 15);
    const endpoint = random.between(1, 3);
    readers.note({ tokens: [old], from, next }, endpoint);
    for (let block = from; block < next; block++) truth.set(block, endpoint);
    for (let block = 0; block < 80; block++) {
      let end = block + 1;
      while (end < 80 && truth.get(end) === truth.get(block)) end++;
      const { endpoint, next } = readers.of(old, block);
      expect([endpoint, Math.min(next, 80)]).toEqual([truth.get(block), end]);
    }
  }
});

it("keeps those of a token apart from those of one that is added later", () => {
  const readers = createFirstReaders();
  readers.note({ tokens: [old], from: 1, next: 9 }, 1);
  readers.note({ tokens: [added], from: 1, next: 6 }, 2);
  readers.note({ tokens: both, from: 9, next: 12 }, 2);
  expect(readers.of(old, 3)).toEqual({ endpoint: 1, next: 9 });
  expect(readers.of(added, 3)).toEqual({ endpoint: 2, next: 6 });
  const segment = { tokens: both, from: 1, next: 12 };
  expect(readers.split(segment)).toEqual([
    { ...segment, tokens: [old] },
    { ...segment, tokens: [added] },
  ]);
  expect(readers.split({ ...segment, from: 9 })).toEqual([{ ...segment, from: 9 }]);
});
