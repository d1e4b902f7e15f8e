import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { root } from "./code-block.ts";

const topFolders = readdirSync(root, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== "node_modules")
  .map(({ name }) => name.replace(".", "\\."));

/** A code span that begins with a folder of the repository. */
const path = new RegExp(`\`((?:${topFolders.join("|")})/[\\w./*-]*)\``, "g");

/**
 * @returns the paths of the repository that a document names in code spans and that do not exist
 */
export function findMissingPaths(markdown: string): string[] {
  const prose = markdown.replace(/```[\s\S]*?```/g, "");
  const named = [...prose.matchAll(path)].map(([, name = ""]) => name);
  return named.filter((name) => !pathExists(name));
}

/** @param pattern from the root of the repository; a `*` stands for a part of a name */
export function pathExists(pattern: string): boolean {
  let places = [root];
  for (const part of pattern.split("/").filter((each) => each !== "")) {
    places = places.flatMap((place) => matchesIn(place, part));
  }
  return places.length > 0;
}

function matchesIn(place: string, part: string): string[] {
  if (!part.includes("*")) return existsSync(join(place, part)) ? [join(place, part)] : [];
  const [before = "", after = ""] = part.split("*");
  return readdirSync(place)
    .filter((name) => name.startsWith(before) && name.endsWith(after))
    .map((name) => join(place, name));
}
