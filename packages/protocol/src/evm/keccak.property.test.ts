import fc from "fast-check";
import { createKeccak } from "hash-wasm";
import { keccak256 as keccakInJavaScript } from "viem";
import { expect, test } from "vitest";
import { keccak256 } from "./keccak.ts";

function agreesWithViem(bytes: Uint8Array): void {
  expect(Buffer.from(keccak256(bytes))).toEqual(Buffer.from(keccakInJavaScript(bytes, "bytes")));
}

test("keccak256 of any bytes equals viem's, before and after JIT compilation", async () => {
  agreesWithViem(Buffer.from("at once"));
  const compiled = await createKeccak(256);
  expect(compiled.init().update("").digest()).toBe(keccakInJavaScript("0x").slice(2));
  fc.assert(fc.property(fc.uint8Array({ maxLength: 600 }), agreesWithViem));
  // Longer than the hasher's own buffer.
  for (const length of [16_384, 16_385, 60_000]) agreesWithViem(Buffer.alloc(length, length));
});

test("a keccak256 result survives the next call", () => {
  const first = keccak256(Buffer.from("first"));
  const kept = Buffer.from(first);
  keccak256(Buffer.from("second"));
  expect(Buffer.from(first)).toEqual(kept);
});
