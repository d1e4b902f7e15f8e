import { expect, it } from "vitest";
import { checkClock } from "./check-clock.ts";

it.each([1e19, 1e80])("a chain at %d ms contradicts the clock in words", async (time) => {
  const checked = checkClock({ now: Date.now, readTimes: async () => [time] });
  await expect(checked).rejects.toMatchObject({ code: "clock_wrong" });
});
