import { expect, it } from "vitest";
import { readProblem } from "./read-problem.ts";

it("The reason of a refusal by MPP is left out where its body does not end", async () => {
  const endless = new ReadableStream({ start: (body) => body.enqueue(new Uint8Array([123])) });
  expect(await readProblem(new Response(endless, { status: 402 }))).toBeUndefined();
});
