import { expect, it } from "vitest";
import { readSettings } from "./settings.ts";

function read(options: Parameters<typeof readSettings>[0]) {
  const problems: string[] = [];
  const settings = readSettings(options, {
    environment: {},
    tell: (problem) => problems.push(problem),
  });
  return { settings, problems };
}

it("the bytes that a process holds have room for its largest request and answer", () => {
  const maxResponseBytes = 2 ** 30;
  const { settings, problems } = read({ maxResponseBytes });
  expect(problems).toEqual([]);
  expect(settings.maxHeldBytes).toBe(maxResponseBytes + settings.maxRequestBytes);
  expect(read({}).settings.maxHeldBytes).toBe(2 ** 28);
});

it("a process that could not hold its largest answer is refused", () => {
  expect(read({ maxHeldBytes: 1_000 }).problems).toEqual([
    "options.maxHeldBytes must be at least options.maxRequestBytes and options.maxResponseBytes together",
  ]);
});

it("the bounds by default are those of the security page", () => {
  expect(read({}).settings).toMatchObject({
    maxUnverifiedBytes: 64 * 2 ** 20,
    maxResponseBytes: 4 * 2 ** 20,
    maxHeldBytes: 256 * 2 ** 20,
    maxKeptAnswerBytes: 256 * 2 ** 10,
  });
});
