import { describe, expect, it } from "vitest";
import { readArguments, UsageError } from "./read-arguments.ts";

describe("the facilitator's command line", () => {
  it("serves by default, with a file or on a devnet as given", () => {
    expect(readArguments([])).toEqual({ kind: "serve", isDevnet: false, file: undefined });
    expect(readArguments(["--config", "a.yaml"])).toMatchObject({ kind: "serve", file: "a.yaml" });
    expect(readArguments(["--devnet"])).toMatchObject({ kind: "serve", isDevnet: true });
  });

  it("prints help, or makes a key", () => {
    expect(readArguments(["--help"])).toEqual({ kind: "help" });
    expect(readArguments(["-h"])).toEqual({ kind: "help" });
    expect(readArguments(["new-key", "shop"])).toEqual({ kind: "new-key", name: "shop" });
  });

  it("refuses unknown arguments", () => {
    for (const args of [
      ["start"],
      ["--port", "1"],
      ["--config"],
      ["new-key"],
      ["new-key", "a shop"],
      ["new-key", "a", "b"],
    ]) {
      expect(() => readArguments(args)).toThrow(UsageError);
    }
  });
});
