import { describe, expect, it } from "vitest";
import { engines } from "../testing/engines.ts";
import { openTestOutbox, type TestOutbox } from "../testing/outbox.ts";
import { appendEvents } from "./append-events.ts";
import { claimDeliveries } from "./claim-deliveries.ts";
import { registerEndpoints } from "./register-endpoints.ts";

const hook = (id: string, types: readonly string[]) => ({
  id,
  url: `https://example.com/${id}`,
  secrets: ["ab12"],
  types,
});

const event = (key: string, type: string, endpoints: readonly string[]) => ({
  key,
  type,
  payload: JSON.stringify({ key, text: 'quotes " and \\ stay' }),
  endpoints,
});

async function claimed(outbox: TestOutbox, endpoint: string): Promise<[string, string][]> {
  const wish = { endpoint, claim: "one", claimMs: 60_000, limit: 2_000 };
  const { deliveries } = await claimDeliveries(outbox, wish);
  return deliveries.map(({ key, type }) => [key, type]);
}

describe.each(engines)("events for endpoints of their own, on $engine", ({ createUrl }) => {
  it("go to those that are named, are enabled, and want the type", async () => {
    const outbox = await openTestOutbox(await createUrl());
    const both = ["thing.made", "thing.gone"];
    await registerEndpoints(outbox, [hook("a", both), hook("b", ["thing.gone"]), hook("c", both)]);
    await registerEndpoints(outbox, [hook("a", both), hook("b", ["thing.gone"])]);
    await outbox.database.transaction((transaction) =>
      appendEvents(outbox, transaction, [
        event("x", "thing.made", ["a", "b", "c"]),
        event("y", "thing.made", ["b", "c"]),
        event("z", "thing.gone", ["b"]),
      ]),
    );
    expect(await claimed(outbox, "a")).toEqual([["x", "thing.made"]]);
    expect(await claimed(outbox, "b")).toEqual([["z", "thing.gone"]]);
    expect(await claimed(outbox, "c")).toEqual([]);
    // An event without a delivery would never be deleted.
    expect(await outbox.count("outbox_events")).toBe(2);
  });

  it("are numbered in their order, however many they are", async () => {
    const outbox = await openTestOutbox(await createUrl());
    await registerEndpoints(outbox, [hook("a", ["thing.made"])]);
    const keys = Array.from({ length: 1_200 }, (_, index) => `key ${(index * 7_919) % 1_200}`);
    await outbox.database.transaction((transaction) =>
      appendEvents(
        outbox,
        transaction,
        keys.map((key) => event(key, "thing.made", ["a"])),
      ),
    );
    expect((await claimed(outbox, "a")).map(([key]) => key)).toEqual(keys);
  });

  it("are gone with their transaction", async () => {
    const outbox = await openTestOutbox(await createUrl());
    await registerEndpoints(outbox, [hook("a", ["thing.made"])]);
    const failed = outbox.database.transaction(async (transaction) => {
      await appendEvents(outbox, transaction, [event("x", "thing.made", ["a"])]);
      throw new Error("undone");
    });
    await expect(failed).rejects.toThrow("undone");
    expect(await claimed(outbox, "a")).toEqual([]);
    expect(await outbox.count("outbox_events")).toBe(0);
  });
});
