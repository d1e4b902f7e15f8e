import { lockDatabaseFile } from "@coinslot/storage";
import { describe, expect, it } from "vitest";
import { createTestLedger } from "../testing/settling-devnet.ts";
import { openLedger } from "./open-ledger.ts";

describe("a ledger in a SQLite file", () => {
  it("belongs to one process, and stays open to readers", async () => {
    const place = await createTestLedger("sqlite");
    const first = await openLedger({ url: place.url, processId: "first" });
    const pauses: number[] = [];
    const pause = async (ms: number) => void pauses.push(ms);
    await expect(openLedger({ url: place.url, processId: "second", pause })).rejects.toThrow(
      /Another process works on/,
    );
    expect(pauses.reduce((sum, ms) => sum + ms, 0)).toBe(1_000);
    const reader = await openLedger({ url: place.url, processId: "reader", readOnly: true });
    await reader.close();
    await first.close();
    const next = await openLedger({ url: place.url, processId: "next" });
    await next.close();
    await place.drop();
  });

  it("is opened once a command that held it for a moment has ended", async () => {
    const place = await createTestLedger("sqlite");
    const command = await lockDatabaseFile(place.url);
    const opened = await openLedger({
      url: place.url,
      processId: "seller",
      pause: async () => command?.release(),
    });
    await opened.close();
    await place.drop();
  });
});
