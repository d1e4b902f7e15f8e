import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../docs/code-block.ts";

/** One instruction: `COPY . .` is COPY with the arguments ". .". */
export interface Instruction {
  keyword: string;
  text: string;
}

/** A stage, from its FROM to the next. */
export interface Stage {
  name: string;
  base: string;
  instructions: Instruction[];
}

/** Reads the stages of the Dockerfile, each after its parent's instructions. */
export function readStages(): Map<string, Stage> {
  const text = readFileSync(join(root, "Dockerfile"), "utf8");
  const lines = text
    .replace(/\\\n/g, " ")
    .split("\n")
    .filter((line) => line.trim() !== "" && !line.startsWith("#"));
  const stages = new Map<string, Stage>();
  let current: Stage | undefined;
  for (const line of lines) {
    const [, keyword = "", rest = ""] = /^([A-Z]+) +(.*)$/.exec(line) ?? [];
    const [, base = "", name = ""] = /^(\S+) AS (\S+)$/.exec(rest) ?? [];
    if (keyword === "FROM") {
      current = { name, base, instructions: [...(stages.get(base)?.instructions ?? [])] };
      stages.set(name, current);
    } else current?.instructions.push({ keyword, text: rest });
  }
  return stages;
}

/** The arguments of a keyword's instructions, the earliest first. */
export function textsOf({ instructions }: Stage, keyword: string): string[] {
  return instructions.filter((each) => each.keyword === keyword).map(({ text }) => text);
}

/** The environment that a stage sets. */
export function environmentOf(stage: Stage): Record<string, string> {
  const pairs = textsOf(stage, "ENV").flatMap((text) => text.split(/ +/));
  return Object.fromEntries(pairs.map((pair) => pair.split(/=(.*)/s).slice(0, 2)));
}
