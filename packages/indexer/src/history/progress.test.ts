import { describe, expect, it } from "vitest";
import { createProgress, type ProgressTerminal } from "./progress.ts";

/** A history of 1,000 blocks, read in steps of this many seconds. */
function tellHistory(terminal: ProgressTerminal | undefined) {
  let now = 1_000_000;
  const lines: { details: object; message: string }[] = [];
  const progress = createProgress({
    chain: "plasma",
    logger: { info: (details, message) => lines.push({ details, message }) },
    clock: { now: () => now },
    terminal,
  });
  return {
    lines,
    progress,
    step(seconds: number, read: { blocks: number; transfers: number }) {
      now += seconds * 1_000;
      progress.advance(read);
    },
  };
}

describe("the progress of history", () => {
  it("is a bar in a terminal, with transfers per second and the time left", () => {
    const written: string[] = [];
    const terminal = { isTTY: true, write: (text: string) => written.push(text) };
    const { lines, progress, step } = tellHistory(terminal);
    progress.begin(1_000);
    step(0.1, { blocks: 1, transfers: 10 });
    expect(written).toEqual([]);
    step(9.9, { blocks: 249, transfers: 24_990 });
    step(0.1, { blocks: 0, transfers: 0 });
    expect(written).toEqual([
      "\rplasma ██████░░░░░░░░░░░░░░░░░░  25.0%  2,500 transfers/s  30 s left\x1b[K",
    ]);
    step(9.9, { blocks: 750, transfers: 75_000 });
    progress.end();
    expect(written.at(-1)).toBe(
      "\rplasma ████████████████████████ 100.0%  5,000 transfers/s  0 s left\x1b[K\n",
    );
    expect(lines).toEqual([]);
  });

  it("is written to the log elsewhere, at intervals and at the end", () => {
    const written: string[] = [];
    const file = { isTTY: false, write: (text: string) => written.push(text) };
    const { lines, progress, step } = tellHistory(file);
    progress.begin(1_000);
    step(1, { blocks: 10, transfers: 100 });
    expect(lines).toEqual([]);
    step(4, { blocks: 90, transfers: 900 });
    step(1, { blocks: 1, transfers: 10 });
    const common = { chain: "plasma", ofBlocks: 1_000 };
    const first = { ...common, blocks: 100, transfers: 1_000, perSecond: 200, secondsLeft: 45 };
    expect(lines).toEqual([{ details: first, message: "Reading history" }]);
    step(4, { blocks: 899, transfers: 8_990 });
    progress.end();
    const last = { ...common, blocks: 1_000, transfers: 10_000, perSecond: 1_000, secondsLeft: 0 };
    expect(lines.at(-1)).toEqual({ details: last, message: "History is read" });
    expect(written).toEqual([]);
  });

  it("is in the status during the history", () => {
    const { progress, step } = tellHistory(undefined);
    expect(progress.pace()).toBeUndefined();
    progress.begin(1_000);
    expect(progress.pace()).toEqual({ transfersPerSecond: 0, secondsLeft: undefined });
    step(2, { blocks: 500, transfers: 6_000 });
    expect(progress.pace()).toEqual({ transfersPerSecond: 3_000, secondsLeft: 2 });
    progress.end();
    expect(progress.pace()).toBeUndefined();
  });
});
