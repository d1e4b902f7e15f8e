import { expect, it } from "vitest";
import { createSpoiltBatches } from "./spoilt-batches.ts";

it("bounds batches for a minute after a spoilt one, however long its transaction is polled", () => {
  let now = 0;
  const spoilt = createSpoiltBatches({ now: () => now });
  for (; now < 60_000; now += 1_000) {
    spoilt.note("deep");
    expect(spoilt.maxPayments(64)).toBe(16);
  }
  for (; now < 300_000; now += 1_000) {
    spoilt.note("deep");
    expect(spoilt.maxPayments(64)).toBe(64);
  }
});

it("divides the bound by four for each spoilt batch of a minute, down to four payments", () => {
  const spoilt = createSpoiltBatches({ now: () => 0 });
  for (const [index, most] of [16, 4, 4].entries()) {
    spoilt.note(`transaction ${index}`);
    expect(spoilt.maxPayments(64)).toBe(most);
  }
});
