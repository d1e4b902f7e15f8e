import pino from "pino";
import { beforeEach, expect, it } from "vitest";
import { noteDispute } from "./note-dispute.ts";
import type { RefundMemory } from "./refund-round.ts";

const refund = { id: "1", network: "eip155:9745", channelId: "0x12" } as const;
let disputes: RefundMemory["disputes"];
let lines: string[];

beforeEach(() => {
  disputes = new Map();
  lines = [];
});

/** Notes a dispute at 0. Returns the time until which the refund rests. */
function note({ awaited }: { awaited: number }): number | undefined {
  const context = {
    clock: { now: () => 0, setTimer: () => () => {} },
    logger: pino({ level: "warn" }, { write: (line) => void lines.push(line) }),
  };
  noteDispute(context, { disputes }, { refund, votes: { awaited } });
  return disputes.get(refund.id)?.until;
}

it("an endpoint that differs once is not reported, for it may be behind by a block", () => {
  note({ awaited: 0 });
  expect(lines).toEqual([]);
  note({ awaited: 0 });
  expect(lines.join("")).toContain("endpoints differ");
});

it("a silent endpoint makes no later rest longer", () => {
  for (let count = 0; count < 10; count += 1) expect(note({ awaited: 1 })).toBe(5_000);
  expect([note({ awaited: 0 }), note({ awaited: 0 })]).toEqual([5_000, 10_000]);
  expect(lines).toHaveLength(1);
});
