import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../docs/code-block.ts";

/** A variable of .env.example. */
export interface ExampleVariable {
  name: string;
  /** The value after the equals sign: the default, or an example. */
  value: string;
  /** True if it is left to be uncommented. */
  isComment: boolean;
}

/** Reads the variables of .env.example. */
export function readExampleVariables(): ExampleVariable[] {
  return readFileSync(join(root, ".env.example"), "utf8")
    .split("\n")
    .flatMap((line) => {
      const [, hash, name, value = ""] = /^(# )?([A-Z][A-Z0-9_]*)=(.*)$/.exec(line) ?? [];
      if (name === undefined) return [];
      return [{ name, value: value.replace(/^'(.*)'$/, "$1"), isComment: hash !== undefined }];
    });
}
