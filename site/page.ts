import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository's root. */
export const root = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

/** A Markdown file that becomes a page of the site. */
export interface Page {
  /** The file, relative to the repository; for a generated page, its source. */
  source: string;
  /** The page, relative to the site: `docs/selling.md`. */
  path: string;
  group: string;
  title: string;
  markdown: string;
}

/** The pages that are written by hand, in the order in which they are listed. */
export function writtenPages(): Page[] {
  const packages = publicPackages().map((name) => `packages/${name}/README.md`);
  return [
    ...pagesOf("Start", ["README.md"]),
    ...pagesOf("Guides", [
      "docs/README.md",
      "docs/selling.md",
      "docs/buying.md",
      "docs/facilitator.md",
      "docs/webhooks.md",
      "docs/operating.md",
      "docs/security.md",
      "docs/moving.md",
      "docs/protocol.md",
      ...filesOf("docs"),
    ]),
    ...pagesOf("Packages", [...packages, "packages/facilitator/src/ledger/README.md"]),
    ...pagesOf("Applications", readmesBelow("apps")),
    ...pagesOf("Examples", ["examples/README.md", ...readmesBelow("examples")]),
    ...pagesOf("Project", [
      "ARCHITECTURE.md",
      "CONTRIBUTING.md",
      "STYLE.md",
      "SECURITY.md",
      "CHANGELOG.md",
      "packages/devnet/README.md",
      "test/faults/README.md",
      "test/interop/README.md",
      "bench/README.md",
      "bench/LOG.md",
      "site/README.md",
    ]),
  ];
}

/** Folder names of the packages that are published. */
export function publicPackages(): string[] {
  return readdirSync(join(root, "packages")).filter((name) => {
    const manifest: { private?: boolean } = JSON.parse(
      readFileSync(join(root, "packages", name, "package.json"), "utf8"),
    );
    return manifest.private !== true;
  });
}

/** The first heading's text. */
function titleOf(markdown: string): string {
  const title = /^# (.+)$/m.exec(markdown)?.[1];
  if (title === undefined) throw new Error(`A page has no title:\n${markdown.slice(0, 200)}`);
  return title.replaceAll("`", "");
}

function pagesOf(group: string, sources: readonly string[]): Page[] {
  return [...new Set(sources)]
    .filter((source) => existsSync(join(root, source)))
    .map((source) => {
      const markdown = readFileSync(join(root, source), "utf8");
      return { source, path: pathOf(source), group, title: titleOf(markdown), markdown };
    });
}

/**
 * `packages/express/README.md` is the page `packages/express.md`, and the first README the home
 * page.
 */
function pathOf(source: string): string {
  if (source === "README.md") return "index.md";
  if (source === "docs/README.md") return "docs/index.md";
  const place = basename(source) === "README.md" ? `${dirname(source)}.md` : source;
  return place.replace("/src/", "-").toLowerCase();
}

function filesOf(folder: string): string[] {
  return readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => posix.join(folder, name));
}

function readmesBelow(folder: string): string[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder)).map((name) => posix.join(folder, name, "README.md"));
}
