import { createHmac, createSecretKey } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { prepareMac } from "./prepare-mac.ts";

it("A prepared mac is HMAC-SHA256 of the whole text, for keys and texts of any length", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 130 }),
      fc.string({ unit: "grapheme", maxLength: 200 }),
      fc.array(fc.string({ unit: "grapheme", maxLength: 40 }), { maxLength: 5 }),
      (secret, start, rests) => {
        const key = createSecretKey(secret);
        const write = prepareMac(key, { start, maxRest: 2_000 });
        for (const rest of rests) {
          const mac = createHmac("sha256", key)
            .update(start + rest)
            .digest("base64url");
          expect(write(rest)).toBe(mac);
        }
      },
    ),
  );
});

it("A prepared mac takes no text that is longer than announced", () => {
  const write = prepareMac(createSecretKey(Buffer.alloc(32)), { start: "a", maxRest: 3 });
  expect(() => write("aä€")).toThrow(RangeError);
});
