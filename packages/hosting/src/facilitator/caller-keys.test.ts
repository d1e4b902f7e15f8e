import { describe, expect, it } from "vitest";
import { createCallerKey, findCaller, readCallerKeys } from "./caller-keys.ts";

function read(text: string, isFile = false) {
  const problems: string[] = [];
  const keys = readCallerKeys(text, { isFile, tell: (problem) => problems.push(problem) });
  return { keys, problems };
}

const long = "a-key-of-more-than-24-signs";

describe("caller keys", () => {
  it("are found by the presented key only", () => {
    const [one, other] = [createCallerKey("shop"), createCallerKey("kiosk")];
    const { keys, problems } = read(`# our sellers\n${one.entry}\n\n${other.entry},mine:${long}`);
    expect(problems).toEqual([]);
    expect(findCaller(keys, one.key)).toBe("shop");
    expect(findCaller(keys, other.key)).toBe("kiosk");
    expect(findCaller(keys, long)).toBe("mine");
    for (const wrong of ["", "shop", `${long} `, one.entry, one.key.slice(0, -1)]) {
      expect(findCaller(keys, wrong)).toBeUndefined();
    }
  });

  it("are stored as hashes only", () => {
    const { key, entry } = createCallerKey("shop");
    expect(entry).toMatch(/^shop:sha256:[0-9a-f]{64}$/);
    expect(entry).not.toContain(key);
    expect(JSON.stringify(read(`mine:${long}`).keys)).not.toContain(long);
  });

  it.each([
    ["no name", long, /entry 1 must be <name>:<key>/],
    ["a name of punctuation", `sh op:${long}`, /entry 1 must be/],
    ["a short key", "shop:secret-but-short", /entry 1 \(shop\) must have a key of 24/],
    ["a truncated hash", "shop:sha256:abc", /entry 1 \(shop\) must have a key/],
    ["nothing", " , # \n", /holds no entry|must be/],
    ["a duplicate name", `shop:${long},shop:${long}2`, /shop is listed twice/],
  ])("are refused with %s, and not repeated in the error", (_case, text, problem) => {
    const { problems } = read(text);
    expect(problems.join()).toMatch(problem);
    expect(problems.join()).not.toContain("secret");
    expect(problems.join()).not.toContain(long);
  });

  it("appear in a file as hashes, never in clear text", () => {
    expect(read(`shop:${long}`, true).problems).toEqual([
      expect.stringContaining("let coinslot facilitator new-key make one"),
    ]);
    expect(read(createCallerKey("shop").entry, true).problems).toEqual([]);
  });
});
