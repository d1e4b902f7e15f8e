import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { readDocument, root } from "./code-block.ts";
import { pathExists } from "./known-paths.ts";

const rows = readDocument("ARCHITECTURE.md")
  .split("\n")
  .filter((line) => line.startsWith("| "))
  .map((line) => line.split("|").slice(1, -1));

/** The overrides of biome.json that restrict the imports of a package. */
const lintRules = z.object({
  overrides: z.array(
    z.object({
      includes: z.array(z.string()),
      linter: z.object({
        rules: z.object({
          style: z
            .object({
              noRestrictedImports: z
                .object({
                  options: z.object({
                    patterns: z.array(z.object({ group: z.array(z.string()) })),
                  }),
                })
                .optional(),
            })
            .optional(),
        }),
      }),
    }),
  ),
});

/** The packages that each package may import, by the linter's rules. */
function readArrows(): Map<string, string[]> {
  const { overrides } = lintRules.parse(JSON.parse(readFileSync(join(root, "biome.json"), "utf8")));
  return new Map(
    overrides.flatMap(({ includes, linter }) => {
      const name = /^packages\/([\w-]+)\/src\/\*\*$/.exec(includes[0] ?? "")?.[1];
      const patterns = linter.rules.style?.noRestrictedImports?.options.patterns ?? [];
      const allowed = patterns.flatMap(({ group }) =>
        group.flatMap((each) => /^!@coinslot\/(.+)$/.exec(each)?.[1] ?? []),
      );
      return name === undefined || patterns.length === 0 ? [] : [[name, allowed.toSorted()]];
    }),
  );
}

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

  it("draws exactly the linter's arrows", () => {
    const start = rows.findIndex(([, head = ""]) => head.includes("May import"));
    const end = rows.findIndex(([, allowed = ""], index) => index > start && / any /.test(allowed));
    const drawn = rows.slice(start + 1, end).map(([name = "", allowed = ""]) => {
      const names = allowed.split(",").map((each) => each.trim());
      return [name.trim(), names.filter((each) => each !== "none of ours").toSorted()] as const;
    });
    expect(new Map(drawn)).toEqual(readArrows());
  });

  it("names a room's existing files", () => {
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
