import { keccak256, stringToBytes } from "viem";
import { expect, it } from "vitest";
import { challengeNonce } from "./challenge-nonce.ts";

it("hashes the UTF-8 of an id and a realm, also where they read as hex", () => {
  for (const [id, realm] of [
    ["kM9xPqWvT2nJrHsY4aDfEb", "api.example.com"],
    ["0xabcd", "0x"],
  ] as const) {
    expect(challengeNonce({ id, realm })).toBe(keccak256(stringToBytes(id + realm)));
  }
});
