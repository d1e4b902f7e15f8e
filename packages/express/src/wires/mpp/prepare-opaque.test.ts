import { decodeOpaque, encodeOpaque } from "@coinslot/protocol";
import { expect, it } from "vitest";
import { prepareOpaque } from "./prepare-opaque.ts";

it("An opaque text holds its URL's hash and 16 random bytes, canonically, and never comes again", () => {
  const hashes = ["abcdefghijklmnopqrstuv", "-_0123456789ABCDEFGHIJ"];
  const texts = hashes.flatMap((hash) => {
    const write = prepareOpaque(hash);
    return Array.from({ length: 1_000 }, () => ({ hash, text: write() }));
  });
  const salts = texts.map(({ hash, text }) => {
    const { for: url, salt = "", ...others } = decodeOpaque(text);
    expect([url, others]).toEqual([hash, {}]);
    expect(salt).toMatch(/^[\w-]{22}$/);
    expect(Buffer.from(salt, "base64url").toString("base64url")).toBe(salt);
    expect(encodeOpaque({ for: hash, salt })).toBe(text);
    return salt;
  });
  expect(new Set(salts).size).toBe(2_000);
});
