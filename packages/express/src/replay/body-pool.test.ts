import { expect, it } from "vitest";
import { createBodyPool } from "./body-pool.ts";

/** A pool for 100 bytes, 60 per key, and the dropped bodies. */
function createPool() {
  const pool = createBodyPool();
  const dropped: string[] = [];
  const open = (name: string, key = name) =>
    pool.open({
      key,
      maxUnverifiedBytes: 100,
      maxBodyBytes: 60,
      onDrop: () => dropped.push(name),
    });
  return { pool, dropped, open };
}

it("a full body pool drops the oldest body that is still arriving", () => {
  const { pool, dropped, open } = createPool();
  const [arrived, slow, other] = [open("arrived"), open("slow"), open("other")];
  arrived.hold(30);
  arrived.complete();
  slow.hold(30);
  other.hold(30);
  const last = open("last");
  last.hold(30);
  expect(dropped).toEqual(["slow"]);
  expect(pool.heldBytes()).toBe(90);
  slow.hold(90);
  expect(pool.heldBytes()).toBe(90);
});

it("the body pool drops a body of the same client where its share is used up, however much room is left", () => {
  const { pool, dropped, open } = createPool();
  open("another").hold(10);
  open("first", "greedy").hold(40);
  open("second", "greedy").hold(40);
  expect(dropped).toEqual(["first"]);
  expect(pool.heldBytes()).toBe(50);
});

it("the body pool drops a new body where all others have arrived, and frees closed ones", () => {
  const { pool, dropped, open } = createPool();
  const bodies = ["a", "b"].map((name) => open(name));
  for (const body of bodies) {
    body.hold(45);
    body.complete();
  }
  open("late").hold(45);
  expect(dropped).toEqual(["late"]);
  for (const body of bodies) body.close();
  expect(pool.heldBytes()).toBe(0);
});
