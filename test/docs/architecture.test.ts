import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readDocument, root } from "./code-block.ts";
import { pathExists } from "./known-paths.ts";

const rows = readDocument("ARCHITECTURE.md")
  .split("\n")
  .filter((line) => line.startsWith("| "))
  .map((line) => line.split("|").slice(1, -1));

const codeIn = (cell = "") => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);

describe("ARCHITECTURE.md", () => {
  it("answers each question by a path of three steps from `ls`, and by a name in that file", () => {
    const start = rows.findIndex(([head = ""]) => head.includes("Question"));
    const questions = rows.slice(start + 1).map(([question = "", steps, name]) => ({
      question,
      steps: codeIn(steps),
      name: codeIn(name)[0] ?? "",
    }));
    expect(questions.length).toBeGreaterThanOrEqual(11);
    const wrong = questions.filter(({ steps, name }) => {
      const path = steps.join("/");
      if (steps.length !== 3 || name === "" || !pathExists(path)) return true;
      return !new RegExp(`\\b${name}\\b`).test(readFileSync(join(root, path), "utf8"));
    });
    expect(wrong).toEqual([]);
  });

  it("names files of a room that exist in it", () => {
    let room = "";
    const missing = rows.flatMap((cells) => {
      const heading = cells.map((cell) => / in `([^`]+)`/.exec(cell)?.[1]).find(Boolean);
      if (heading !== undefined) room = heading;
      else if (!cells.some((cell) => /`[\w/-]+(\.ts|\/)`/.test(cell))) room = "";
      if (room === "" || heading !== undefined) return [];
      const files = cells.flatMap(codeIn).filter((code) => /^[\w/-]+(\.ts|\/)$/.test(code));
      return files.filter((file) => !pathExists(`${room}/${file}`));
    });
    expect(missing).toEqual([]);
  });
});
