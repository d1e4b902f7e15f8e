import { expect, it } from "vitest";
import { createFirstReaders } from "./first-readers.ts";

it("names the endpoint that has read a block first, and the end of its blocks", () => {
  const readers = createFirstReaders();
  readers.note({ from: 1, next: 5 }, 1);
  readers.note({ from: 5, next: 9 }, 1);
  readers.note({ from: 9, next: 12 }, 2);
  expect(readers.of(3)).toEqual({ endpoint: 1, next: 9 });
  expect(readers.of(11)).toEqual({ endpoint: 2, next: 12 });
  expect(readers.of(12)).toEqual({ endpoint: undefined, next: Number.POSITIVE_INFINITY });
});

it("names the last one of a block that was read again after a reorganisation", () => {
  const readers = createFirstReaders();
  readers.note({ from: 1, next: 9 }, 1);
  readers.note({ from: 7, next: 8 }, 2);
  expect(readers.of(6)).toEqual({ endpoint: 1, next: 7 });
  expect(readers.of(7)).toEqual({ endpoint: 2, next: 8 });
  expect(readers.of(8)).toEqual({ endpoint: 1, next: 9 });
});
