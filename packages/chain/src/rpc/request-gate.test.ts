import { describe, expect, it } from "vitest";
import { createManualClock } from "../testing/manual-clock.ts";
import { createRequestGate } from "./request-gate.ts";

const { signal } = new AbortController();

function setUp(limits: { maxInFlight?: number; callsPerSecond?: number }) {
  const clock = createManualClock();
  const { maxInFlight = 100, callsPerSecond } = limits;
  return { clock, gate: createRequestGate({ clock, maxInFlight, callsPerSecond }) };
}

/** Runs all due timers. */
function settle() {
  return new Promise<void>((resolve) => setImmediate(resolve));
}

describe("a request gate", () => {
  it("bounds concurrent requests, in order of arrival", async () => {
    const { gate } = setUp({ maxInFlight: 1 });
    const entered: number[] = [];
    const leave = await gate.enter(1, signal);
    const later = [1, 2].map(async (visitor) => {
      const leaveLater = await gate.enter(1, signal);
      entered.push(visitor);
      return leaveLater;
    });
    await settle();
    expect(entered).toEqual([]);

    leave();
    await settle();
    expect(entered).toEqual([1]);

    (await later[0])?.();
    (await later[1])?.();
    expect(entered).toEqual([1, 2]);
    expect(gate.inFlight()).toBe(0);
  });

  it("gives an aborted request's place to the next one", async () => {
    const { gate } = setUp({ maxInFlight: 1 });
    const leave = await gate.enter(1, signal);
    const impatient = new AbortController();
    const gaveUp = gate.enter(1, impatient.signal);
    const patient = gate.enter(1, signal);
    const reason = new Error("enough");

    impatient.abort(reason);
    await expect(gaveUp).rejects.toBe(reason);
    leave();

    (await patient)();
    expect(gate.inFlight()).toBe(0);
  });

  it("spreads calls over time, after an initial burst of one second's worth", async () => {
    const { clock, gate } = setUp({ callsPerSecond: 10 });
    let entered = 0;
    for (let index = 0; index < 15; index += 1)
      void gate.enter(1, signal).then(() => {
        entered += 1;
      });
    await settle();
    expect(entered).toBe(10);

    clock.advance(250);
    await settle();
    expect(entered).toBe(12);

    clock.advance(250);
    await settle();
    expect(entered).toBe(15);
  });

  it("counts every call of a batch, even one larger than a second's worth", async () => {
    const { clock, gate } = setUp({ callsPerSecond: 10 });
    let entered = false;
    void gate.enter(30, signal).then(() => {
      entered = true;
    });
    await settle();
    clock.advance(1_900);
    await settle();
    expect(entered).toBe(false);

    clock.advance(100);
    await settle();
    expect(entered).toBe(true);
  });

  it("charges nothing for a request that was aborted in the queue", async () => {
    const { clock, gate } = setUp({ callsPerSecond: 10 });
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const impatient = new AbortController();
      const gaveUp = gate.enter(500, impatient.signal);
      await settle();
      impatient.abort(new Error("enough"));
      await expect(gaveUp).rejects.toThrow("enough");
    }
    clock.advance(1_000);
    let entered = false;
    void gate.enter(10, signal).then(() => {
      entered = true;
    });
    await settle();
    expect(entered).toBe(true);
  });
});
