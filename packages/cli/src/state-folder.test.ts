import { isAbsolute } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { stateFolder } from "./state-folder.ts";

afterEach(() => void vi.unstubAllEnvs());

describe("the folder of allowances", () => {
  it.each(["", ".", "relative"])("is not in the folder at hand, with HOME=%j", (home) => {
    vi.stubEnv("HOME", home);
    expect(isAbsolute(stateFolder({}, process.cwd()))).toBe(true);
  });
});
