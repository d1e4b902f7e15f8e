import { describe, expect, it } from "vitest";
import { readStopChange } from "./stop.ts";

const account = "0x90F79bf6EB2c4f870365E785982E1f101E93b906";
const target = { kind: "network", name: "eip155:9745" };
const set = (change: { target?: typeof target; reason?: string }) => () =>
  readStopChange({ operation: "set", target, reason: "maintenance", ...change });

describe("a change of a stop switch", () => {
  it("needs a reason in words", () => {
    expect(set({ reason: "  until noon " })()).toMatchObject({ reason: "until noon" });
    for (const reason of [" ", "a\u001b[2J", "a\nb", "a".repeat(201)]) {
      expect(set({ reason })).toThrow(/1 to 200 characters, without control characters/);
    }
  });

  it("needs a known kind, and a name of its form", () => {
    for (const wrong of [
      { kind: "network", name: "plasma" },
      { kind: "route", name: "" },
      { kind: "float", name: "eip155:9745" },
      { kind: "payer", name: account },
    ]) {
      expect(set({ target: wrong })).toThrow(/must be "network", "route" or "float"/);
    }
  });

  it("names a float as the ledger writes it", () => {
    expect(set({ target: { kind: "float", name: account } })()).toMatchObject({
      target: { kind: "float", name: account.toLowerCase() },
    });
  });
});
