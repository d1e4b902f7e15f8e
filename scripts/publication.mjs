// Where this project is published: repository, homepage and bugs, from the root package.json alone.
import { readFileSync } from "node:fs";

const members = ["repository", "homepage", "bugs"];

/**
 * Reads where the project is published.
 *
 * @param {Record<string, unknown>} [manifest] the root package.json
 * @returns {{ repository: string, homepage: string, bugs: string }} https URLs without a trailing
 * slash
 * @throws with every member that is missing or is no https URL
 */
export function readPublication(manifest = JSON.parse(readFileSync("package.json", "utf8"))) {
  const wrong = members.filter((member) => !isHttps(manifest[member]));
  if (wrong.length > 0) {
    throw new Error(
      `A release needs ${wrong.join(", ")} in the root package.json, each an https URL as text.`,
    );
  }
  const [repository, homepage, bugs] = members.map((member) => manifest[member].replace(/\/$/, ""));
  return { repository: repository.replace(/\.git$/, ""), homepage, bugs };
}

/** A placeholder where the packages are tried and not released. */
export const placeholderPublication = {
  repository: "https://repository.invalid/coinslot",
  homepage: "https://homepage.invalid",
  bugs: "https://repository.invalid/coinslot/issues",
};

/** The publication, or its placeholder while the root package.json names none. */
export function publicationOrPlaceholder() {
  const manifest = JSON.parse(readFileSync("package.json", "utf8"));
  const isUnset = members.every((member) => manifest[member] === undefined);
  return isUnset ? placeholderPublication : readPublication(manifest);
}

function isHttps(value) {
  return typeof value === "string" && URL.canParse(value) && new URL(value).protocol === "https:";
}
