import { expect, it } from "vitest";
import { readRefusal } from "./read-refusal.ts";

it("the code of a refusal is cut, so that a seller fills no log", async () => {
  const answer = Response.json({ error: "x".repeat(200_000), charged: false });
  expect(await readRefusal(answer)).toEqual({ error: "x".repeat(256), charged: false });
});
