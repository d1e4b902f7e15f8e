import { describe, expect, it } from "vitest";
import { createTestLedger } from "../testing/settling-devnet.ts";
import { openLedger } from "./open-ledger.ts";

describe("a ledger in a SQLite file", () => {
  it("belongs to one process, and stays open to readers", async () => {
    const place = await createTestLedger("sqlite");
    const first = await openLedger({ url: place.url, processId: "first" });
    await expect(openLedger({ url: place.url, processId: "second" })).rejects.toThrow(
      /Another process works on/,
    );
    const reader = await openLedger({ url: place.url, processId: "reader", readOnly: true });
    await reader.close();
    await first.close();
    const next = await openLedger({ url: place.url, processId: "next" });
    await next.close();
    await place.drop();
  });
});
