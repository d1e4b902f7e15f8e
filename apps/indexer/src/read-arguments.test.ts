import { KeysUsageError } from "@coinslot/hosting";
import { describe, expect, it } from "vitest";
import { readArguments } from "./read-arguments.ts";

describe("the indexer's command line", () => {
  it("is a mode, a file, or a command on keys", () => {
    const nothing = { isHelp: false, isDevnet: false, file: undefined, keysArgs: undefined };
    expect(readArguments([])).toEqual(nothing);
    expect(readArguments(["--devnet"])).toEqual({ ...nothing, isDevnet: true });
    expect(readArguments(["--help", "whatever"])).toEqual({ ...nothing, isHelp: true });
    expect(readArguments(["--config", "a.yaml", "keys", "list", "--json"])).toEqual({
      ...nothing,
      file: "a.yaml",
      keysArgs: ["list", "--json"],
    });
  });

  it("refuses unknown arguments", () => {
    expect(() => readArguments(["start"])).toThrow(KeysUsageError);
    expect(() => readArguments(["--config"])).toThrow(KeysUsageError);
  });
});
