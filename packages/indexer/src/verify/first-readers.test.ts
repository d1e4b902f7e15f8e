import { expect, it } from "vitest";
import type { KnownToken } from "../store/known-token.ts";
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
