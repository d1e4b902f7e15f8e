import { setImmediate as nextTurn } from "node:timers/promises";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createAutoResetEvent } from "./auto-reset-event.ts";

async function pause(kind: "none" | "microtask" | "turn"): Promise<void> {
  if (kind === "microtask") await Promise.resolve();
  else if (kind === "turn") await nextTurn();
}

const pauses = fc.array(fc.constantFrom("none", "microtask", "turn" as const), {
  minLength: 1,
  maxLength: 20,
});

describe("an auto-reset event", () => {
  it("loses no set, at whatever moment of the reader's work it comes", async () => {
    await fc.assert(
      fc.asyncProperty(pauses, pauses, async (ofWriter, ofReader) => {
        const event = createAutoResetEvent();
        let written = 0;

        async function read(): Promise<void> {
          for (let round = 0; ; round++) {
            const read = written;
            await pause(ofReader[round % ofReader.length] ?? "none");
            if (read === ofWriter.length) return;
            await event.wait(60_000);
          }
        }

        const reading = read();
        for (const each of ofWriter) {
          await pause(each);
          written += 1;
          event.set();
        }
        // The test's time limit ends it where a set was lost.
        await reading;
      }),
    );
  });

  it("makes one wake-up of many sets", async () => {
    const event = createAutoResetEvent();
    event.set();
    event.set();
    await event.wait(60_000);
    let isAwake = false;
    const waiting = event.wait(60_000).then(() => {
      isAwake = true;
    });
    await nextTurn();
    expect(isAwake).toBe(false);
    event.set();
    await waiting;
  });

  it("ends a wait when its time is over", async () => {
    await createAutoResetEvent().wait(1);
  });
});
