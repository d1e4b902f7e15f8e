import { expect, test } from "vitest";
import { supportedSchema } from "./supported.ts";

test("supported kinds are read into CAIP-2, without unknown networks", () => {
  const kind = (network: string) => ({ x402Version: 1, scheme: "exact", network });
  const names = [
    "eip155:9745",
    "base",
    "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
    "solana",
    "",
    ":",
  ];
  const { kinds } = supportedSchema.parse({ kinds: names.map(kind) });
  expect(kinds).toEqual([
    kind("eip155:9745"),
    kind("eip155:8453"),
    kind("solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp"),
  ]);
});

test("absent members of a supported answer are read as empty", () => {
  const kind = { x402Version: 2, scheme: "exact", network: "eip155:9745" };
  const empty = { kinds: [kind], extensions: [], signers: {} };
  expect(supportedSchema.parse({ kinds: [{ ...kind, extra: null }] })).toEqual(empty);
  // Go writes null for a nil slice or map.
  expect(supportedSchema.parse({ kinds: [kind], extensions: null, signers: null })).toEqual(empty);
});

test.each([null, [], {}, { kinds: [{}] }, { kinds: "all" }])(
  "refuses %j as a supported answer",
  (answer) => {
    expect(supportedSchema.safeParse(answer).success).toBe(false);
  },
);
