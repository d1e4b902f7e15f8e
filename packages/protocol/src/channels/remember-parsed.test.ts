import { expect, it } from "vitest";
import * as z from "zod";
import { rememberParsed } from "./remember-parsed.ts";

const schema = z.object({ size: z.int().min(1) });

it("returns the same result for the same input, of a bounded number of inputs", () => {
  const remembering = rememberParsed(schema, { size: 2 });
  const first = remembering.parse({ size: 1 });
  expect(first).toEqual({ size: 1 });
  expect(remembering.parse({ size: 1 })).toBe(first);
  expect(remembering.parse({ size: 2 })).toEqual({ size: 2 });
  expect(remembering.parse({ size: 1 })).toBe(first);
  remembering.parse({ size: 3 });
  expect(remembering.parse({ size: 1 })).not.toBe(first);
});

it("refuses what the schema refuses, each time, with the place of the fault", () => {
  const remembering = z.object({ accepted: rememberParsed(schema, { size: 2 }) });
  for (const accepted of [{ size: 0 }, { size: 0 }, undefined, null, "1", { size: 1n }]) {
    expect(remembering.safeParse({ accepted }).success).toBe(false);
  }
  const { error } = remembering.safeParse({ accepted: { size: 0 } });
  expect(error?.issues[0]?.path).toEqual(["accepted", "size"]);
});
