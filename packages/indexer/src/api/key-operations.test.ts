import { openDatabase } from "@coinslot/storage";
import { describe, expect, it, onTestFinished } from "vitest";
import { engines } from "../testing/engines.ts";
import { openKeyStore } from "./api-stores.ts";
import { createApiKey } from "./key-operations.ts";

describe.each(engines)("the keys of one owner, in $engine", ({ createUrl }) => {
  async function openStores() {
    const url = await createUrl();
    const stores = [];
    for (const _ of ["one process", "another"]) {
      const database = await openDatabase<Record<string, never>>({ url });
      onTestFinished(() => database.close());
      stores.push(await openKeyStore(database));
    }
    return stores;
  }

  it("are 100 at most, also where two processes make many at once", async () => {
    const stores = await openStores();
    const [store] = stores;
    if (store === undefined) throw new Error("No store.");
    const { stored: caller } = await store.create({ owner: "one" });
    await store.create({ owner: "another" });
    for (let count = 0; count < 89; count += 1) await store.create({ owner: "one" });
    const wishes = Array.from({ length: 10 }, () => stores).flat();
    const made = await Promise.allSettled(
      wishes.map((keys) => createApiKey(keys, { caller, wish: {}, now: Date.now() })),
    );
    const refusals = made.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    expect(refusals).toHaveLength(10);
    for (const refusal of refusals) expect(refusal).toMatchObject({ status: 400 });
    expect(await store.list("one")).toHaveLength(100);
  });
});
