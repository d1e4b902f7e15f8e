import { describe, expect, it } from "vitest";
import { freshSalt } from "./fresh-salt.ts";

describe("a salt", () => {
  it("is 16 bytes in base64url, and none comes twice from any filling of the pool", () => {
    const salts = Array.from({ length: 1_000 }, freshSalt);
    expect(new Set(salts).size).toBe(1_000);
    for (const salt of salts) expect(salt).toMatch(/^[\w-]{22}$/);
  });
});
