import { systemClock } from "@coinslot/chain";
import { ConfigurationError } from "@coinslot/protocol";
import { expect, it, onTestFinished, vi } from "vitest";
import { keepEngine } from "./keep-engine.ts";
import { type Logger, silentLogger } from "./logger.ts";
import { createLedgerHealth } from "./ready/ledger-health.ts";

type Report = (reason: unknown) => void;
interface Parts {
  end: (number: number) => Promise<void>;
  logger: Logger;
}

/** A kept engine that only has a number, and the steps of its starts in order. */
function keepNumbers(
  start: (number: number, report: Report) => Promise<void>,
  { end = async () => undefined, logger = silentLogger }: Partial<Parts> = {},
) {
  const steps: string[] = [];
  let starts = 0;
  const kept = keepEngine({
    health: createLedgerHealth({ logger, clock: systemClock }),
    // Attempts follow each other at once.
    clock: { ...systemClock, setTimer: (run) => systemClock.setTimer(run, 0) },
    patienceMs: 1,
    async start({ isAnew, onReplaced }) {
      starts += 1;
      const number = starts;
      await start(number, onReplaced);
      steps.push(`${number} works${isAnew ? " anew" : ""}`);
      return {
        number,
        async close() {
          steps.push(`${number} ends`);
          await end(number);
        },
      };
    },
  });
  onTestFinished(() => kept.close());
  return { kept, steps };
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await undefined;
}

it("a ledger that is replaced again while it is opened anew is opened once more, at every turn", async () => {
  for (let turn = 0; turn < 12; turn += 1) {
    const { kept, steps } = keepNumbers(async (number, report) => {
      if (number <= 2) void turns(turn).then(() => report("replaced"));
    });
    await vi.waitFor(async () => expect(await kept.current()).toMatchObject({ number: 3 }), 20_000);
    expect(steps, `after ${turn} turns`).toEqual([
      "1 works",
      "1 ends",
      "2 works anew",
      "2 ends",
      "3 works anew",
    ]);
  }
});

it("an attempt that failed after its ledger was replaced does not end the one after it", async () => {
  const { kept, steps } = keepNumbers(async (number, report) => {
    await turns(1);
    if (number <= 2) report("replaced");
    if (number === 2) throw new Error("no server");
  });
  await vi.waitFor(async () => expect(await kept.current()).toMatchObject({ number: 3 }), 20_000);
  expect(steps).toEqual(["1 works", "1 ends", "3 works anew"]);
});

it("refuses every call while a ledger cannot be opened anew, and can be closed meanwhile", async () => {
  let attempts = 0;
  const { kept, steps } = keepNumbers(async (number, report) => {
    attempts = number;
    if (number > 1) throw new Error("no server");
    void turns(5).then(() => report("replaced"));
  });
  const first = await kept.current();
  await vi.waitFor(() => expect(attempts).toBeGreaterThan(3), 20_000);
  await expect(kept.current()).rejects.toThrow("The ledger is being opened anew");
  expect(kept.isWorking(first)).toBe(false);
  await kept.close();
  const last = attempts;
  await new Promise(setImmediate);
  expect(attempts).toBe(last);
  expect(steps).toEqual(["1 works", "1 ends", "1 ends"]);
});

it("an engine that does not end is left behind, and another one works in its place", async () => {
  const never = new Promise<void>(() => undefined);
  const { kept, steps } = keepNumbers(
    async (number, report) => {
      if (number === 1) void turns(5).then(() => report("replaced"));
    },
    { end: async (number) => (number === 1 ? never : undefined) },
  );
  const first = await kept.current();
  await vi.waitFor(async () => expect(await kept.current()).toMatchObject({ number: 2 }), 20_000);
  expect(kept.isWorking(first)).toBe(false);
  await kept.close();
  expect(steps).toEqual(["1 works", "1 ends", "2 works anew", "2 ends"]);
});

it("logs once a minute that a ledger cannot be opened anew, whatever the reason", async () => {
  const lines: string[] = [];
  let attempts = 0;
  const note = (_fields: object, message: string) => void lines.push(message);
  keepNumbers(
    async (number, report) => {
      attempts = number;
      if (number > 1) throw new ConfigurationError("The facilitator", ["another chain"]);
      void turns(5).then(() => report("replaced"));
    },
    { logger: { ...silentLogger, warn: note, error: note } },
  );
  await vi.waitFor(() => expect(attempts).toBeGreaterThan(5), 20_000);
  expect(lines).toEqual([
    "the ledger cannot be written: new payments are refused until it can. The log has the reason.",
    "the ledger could not be opened anew; retrying",
  ]);
});
