import { plasma, plasmaUsdt0 } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { describeReturn } from "./describe-return.ts";

const channel = { network: plasma, token: plasmaUsdt0.address };
const id = "0x01";
const at = Date.UTC(2026, 0, 1) / 1000;

describe("the text of a withdrawal", () => {
  it.each<[string, Parameters<typeof describeReturn>[1], string]>([
    [
      "has what the seller gave back, and the rest",
      { id, state: "begun", amount: 8000n, refunded: 1000n, finalizeAfter: at },
      "The seller has given back 0.001 USDT0. The withdrawal of 0.008 USDT0 has begun. Run this again after 2026-01-01 00:00 UTC.",
    ],
    [
      "says until when a deposit may follow",
      { id, state: "nothing", amount: 0n, depositUntil: at },
      "The escrow holds nothing that is not charged. A signed deposit may be executed until 2026-01-01 00:00 UTC: run this again after that.",
    ],
    [
      "has a time beyond all dates, which a node may name",
      { id, state: "waiting", amount: 8000n, finalizeAfter: 2 ** 52 },
      "The withdrawal of 0.008 USDT0 has begun. Run this again after +275760-09-13 00 UTC.",
    ],
    [
      "says where the escrow holds nothing",
      { id, state: "nothing", amount: 0n },
      "The escrow holds nothing that is not charged.",
    ],
    [
      "says where nothing came back",
      { id, state: "withdrawn", amount: 0n },
      "The withdrawal has ended, and nothing came back.",
    ],
    [
      "says where the seller gave nothing",
      { id, state: "silent", amount: 0n },
      "The seller has given nothing back.",
    ],
  ])("%s", (_name, result, text) => {
    expect(describeReturn(channel, result)).toBe(text);
  });
});
