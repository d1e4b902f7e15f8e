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

  it("lets no more calls in within any second than its budget", async () => {
    const { clock, gate } = setUp({ callsPerSecond: 10 });
    let entered = 0;
    for (let index = 0; index < 15; index += 1)
      void gate.enter(1, signal).then(() => {
        entered += 1;
      });
    await settle();
    expect(entered).toBe(10);

    clock.advance(999);
    await settle();
    expect(entered).toBe(10);

    clock.advance(1);
    await settle();
    expect(entered).toBe(15);
  });

  it("counts every call of a batch, even one larger than a second's worth", async () => {
    const { clock, gate } = setUp({ callsPerSecond: 10 });
    await gate.enter(30, signal);
    let entered = false;
    void gate.enter(1, signal).then(() => {
      entered = true;
    });
    clock.advance(2_999);
    await settle();
    expect(entered).toBe(false);

    clock.advance(1);
    await settle();
    expect(entered).toBe(true);
  });

  it("charges nothing for a request that was aborted in the queue", async () => {
    const { clock, gate } = setUp({ callsPerSecond: 10 });
    await gate.enter(10, signal);
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

  it("lets urgent requests in before others, and every fifth turn is that of the others", async () => {
    const { clock, gate } = setUp({ callsPerSecond: 1 });
    await gate.enter(1, signal);
    const entered: string[] = [];
    const queue = (name: string, isUrgent: boolean) =>
      void gate.enter(1, signal, { isUrgent }).then(() => entered.push(name));
    for (let index = 0; index < 2; index += 1) queue("usual", false);
    for (let index = 0; index < 9; index += 1) queue("urgent", true);
    for (let turn = 0; turn < 11; turn += 1) {
      clock.advance(1_000);
      await settle();
    }
    const four = ["urgent", "urgent", "urgent", "urgent"];
    expect(entered).toEqual([...four, "usual", ...four, "usual", "urgent"]);
  });

  it("refuses a request at once where a thousand wait", async () => {
    const { gate } = setUp({ maxInFlight: 1 });
    await gate.enter(1, signal);
    const ending = new AbortController();
    const waiting = Array.from({ length: 1_000 }, () => gate.enter(1, ending.signal));
    await expect(gate.enter(1, signal)).rejects.toThrow("too many requests wait");
    ending.abort(new Error("enough"));
    const ended = await Promise.allSettled(waiting);
    expect(ended.every(({ status }) => status === "rejected")).toBe(true);
  });

  it("lets an urgent request in next where a thousand others wait", async () => {
    const { gate } = setUp({ maxInFlight: 1 });
    const leave = await gate.enter(1, signal);
    const ending = new AbortController();
    const waiting = Array.from({ length: 1_000 }, () => gate.enter(1, ending.signal));
    const urgent = gate.enter(1, signal, { isUrgent: true });
    leave();
    await expect(urgent).resolves.toBeInstanceOf(Function);
    ending.abort(new Error("enough"));
    await Promise.allSettled(waiting);
  });

  it("lets the next request in when the one that it waited for is aborted", async () => {
    const { gate } = setUp({ callsPerSecond: 10 });
    await gate.enter(5, signal);
    const impatient = new AbortController();
    const large = gate.enter(10, impatient.signal);
    const small = gate.enter(5, signal);
    impatient.abort(new Error("enough"));
    await expect(large).rejects.toThrow("enough");
    await expect(small).resolves.toBeInstanceOf(Function);
  });
});
