import { describe, expect, it } from "vitest";
import { readShellCommands } from "./shell-command.ts";

describe("a shell block", () => {
  it("is a list of commands with their words", () => {
    const text = [
      "export A=1 >> a.log   # a comment",
      "B=2 node seller.mjs & node 'buyer one.mjs' && curl \\",
      '  -d "{ \\"a\\": 1 }" http://localhost:1/x#y',
    ].join("\n");
    expect(readShellCommands(text)).toEqual([
      { line: 1, variables: [], words: ["export", "A=1"] },
      { line: 2, variables: ["B=2"], words: ["node", "seller.mjs"] },
      { line: 2, variables: [], words: ["node", "buyer one.mjs"] },
      { line: 2, variables: [], words: ["curl", "-d", '{ "a": 1 }', "http://localhost:1/x#y"] },
    ]);
  });

  it.each(["echo $(date)", "echo `date`", "echo 'x"])("is refused: %s", (text) => {
    expect(() => readShellCommands(text)).toThrow();
  });
});
