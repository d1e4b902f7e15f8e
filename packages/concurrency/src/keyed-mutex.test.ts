import { describe, expect, it } from "vitest";
import { createKeyedMutex } from "./keyed-mutex.ts";
import { createDeferred } from "./testing/deferred.ts";

describe("a keyed mutex", () => {
  it("lets callers with one key wait for one another, and others pass", async () => {
    const mutex = createKeyedMutex<string>();
    const order: string[] = [];
    const held = createDeferred();
    const first = mutex.run("a", () => held.promise);
    const second = mutex.run("a", async () => order.push("second of a"));
    await mutex.run("b", async () => order.push("first of b"));
    held.resolve();
    await Promise.all([first, second]);
    expect(order).toEqual(["first of b", "second of a"]);
  });

  it("counts the callers of a key, and forgets it after the last one", async () => {
    const mutex = createKeyedMutex<string>();
    const held = createDeferred();
    const abort = new AbortController();
    const first = mutex.run("a", () => held.promise);
    const second = mutex.run("a", async () => undefined, abort.signal);
    expect(mutex.count("a")).toBe(2);
    abort.abort(new Error("gave up"));
    await expect(second).rejects.toThrow("gave up");
    expect(mutex.count("a")).toBe(1);
    held.reject(new Error("failed"));
    await expect(first).rejects.toThrow("failed");
    expect(mutex.count("a")).toBe(0);
  });
});
